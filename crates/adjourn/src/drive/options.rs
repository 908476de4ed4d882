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
            if option.is_mode() && own.as_ref() == Some(&option.value) {
                *own = None;
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
