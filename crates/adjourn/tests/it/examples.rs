//! The examples, which the doc tests run: the first is as short as it says.

#[test]
fn the_first_example_fits_on_a_page() {
    let lines = include_str!("../../examples/embed.rs").lines().count();
    assert!(lines <= 40, "{lines} lines");
}
