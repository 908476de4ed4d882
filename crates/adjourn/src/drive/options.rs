//! Options that are set while a step runs: its driver is told of them.

use std::collections::VecDeque;
use std::future::poll_fn;

use adjourn_core::option::SessionOption;
use adjourn_driver::{BoxFuture, Control, Driver, Reply};

/// What a driver knows of the options of its session while a step runs.
pub(super) struct OptionsTold {
    /// The options as the driver was told that they are.
    told: Vec<SessionOption>,
    /// What it is being told, the oldest first.
    telling: VecDeque<BoxFuture<'static, Reply>>,
}

impl OptionsTold {
    /// Begins with the options that a step is given.
    pub(super) fn new(given: &[SessionOption]) -> Self {
        Self { told: given.to_vec(), telling: VecDeque::new() }
    }

    /// Tells the driver what has changed. `own` is the mode that the driver has set by itself, which
    /// it need not be told.
    pub(super) fn tell(
        &mut self,
        driver: &mut dyn Driver,
        now: &[SessionOption],
        own: &mut Option<String>,
    ) {
        if self.told == now {
            return;
        }
        for option in now.iter().filter(|option| !self.told.contains(option)) {
            // What a client has chosen since is no longer the driver's own.
            if option.is_mode() && own.take().as_ref() == Some(&option.value) {
                continue;
            }
            let (option, value) = (option.id.clone(), option.value.clone());
            self.telling.push_back(driver.control(Control::SetOption { option, value }));
        }
        self.told = now.to_vec();
    }

    /// Resolves when the driver has replied to one of them; never if there is none.
    ///
    /// The step goes on meanwhile, so that a driver that never replies keeps nothing waiting. What it
    /// replies changes nothing: the option is committed.
    pub(super) async fn replied(&mut self) {
        let Some(oldest) = self.telling.front_mut() else { return std::future::pending().await };
        poll_fn(|context| oldest.as_mut().poll(context)).await;
        self.telling.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use adjourn_core::option::OptionValue;
    use adjourn_driver::{BoxStream, Part, Step};

    use super::*;

    /// A driver that takes down which options it is told of.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<String>>>);

    impl Driver for Told {
        fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
            unreachable!("no step is run")
        }

        fn control(&mut self, control: Control) -> BoxFuture<'static, Reply> {
            if let Control::SetOption { value, .. } = control {
                self.0.lock().unwrap().push(value);
            }
            Box::pin(async { Reply::Done })
        }
    }

    #[test]
    fn a_driver_is_told_of_each_mode_but_the_one_that_it_has_just_set() {
        let modes = ["code", "ask"].map(|id| OptionValue {
            id: id.to_owned(),
            name: id.to_owned(),
            description: None,
        });
        let begins = SessionOption::mode(modes.to_vec()).unwrap();
        let at = |value: &str| [SessionOption { value: value.to_owned(), ..begins.clone() }];
        let mut driver = Told::default();
        let mut options = OptionsTold::new(&at("code"));
        // The driver sets the mode that holds: nothing changes.
        let mut own = Some("code".to_owned());
        options.tell(&mut driver, &at("code"), &mut own);
        options.tell(&mut driver, &at("ask"), &mut own);
        // A client goes back to what the driver had set before.
        options.tell(&mut driver, &at("code"), &mut own);
        assert_eq!(*driver.0.lock().unwrap(), ["ask", "code"]);
        own = Some("ask".to_owned());
        options.tell(&mut driver, &at("ask"), &mut own);
        assert_eq!(*driver.0.lock().unwrap(), ["ask", "code"], "it has set that one by itself");
    }
}
