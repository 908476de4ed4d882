//! The name of the user who runs the program.

/// Where the system keeps the names of its users.
const USERS: &str = "/etc/passwd";
/// The most characters of a name.
const MOST: usize = 64;

/// Returns the user's name: what the environment says, or the system's own list, or the number.
///
/// Timers, services and containers set no variable, and what they do has an author all the same.
pub fn user() -> String {
    let said = |name| std::env::var(name).ok().and_then(|user| clean(&user));
    said("USER").or_else(|| said("LOGNAME")).unwrap_or_else(|| {
        let number = rustix::process::geteuid().as_raw();
        let users = std::fs::read(USERS).unwrap_or_default();
        named(&String::from_utf8_lossy(&users), number).unwrap_or_else(|| format!("uid {number}"))
    })
}

/// Returns the name that a list of users has for a number.
fn named(users: &str, number: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, own) = (fields.next()?, fields.next()?, fields.next()?);
        (own.parse() == Ok(number)).then(|| clean(name))?
    })
}

/// Returns a name without what cannot stand on a line, if anything is left of it.
fn clean(name: &str) -> Option<String> {
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(MOST).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_number() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\n# 7\n+::::::\n:x:7:7::/:\nann:x:1000:1000::/:\n";
        assert_eq!(named(users, 0).as_deref(), Some("root"));
        assert_eq!(named(users, 1000).as_deref(), Some("ann"));
        // One without a name, and one that is not there.
        assert_eq!(named(users, 7), None);
        assert_eq!(named(users, 100), None);
        assert_eq!(clean(" \u{7}"), None);
    }
}
