//! Who has to be looked at when. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kit::application::AppName;

/// At most one time for each Application, the earliest first.
#[derive(Clone, Debug, Default)]
pub struct Alarms {
    times: BTreeMap<AppName, Duration>,
    order: BTreeSet<(Duration, AppName)>,
}

impl Alarms {
    /// Sets or removes the time of an Application.
    pub fn set(&mut self, name: &AppName, time: Option<Duration>) {
        if let Some(before) = self.times.remove(name) {
            self.order.remove(&(before, name.clone()));
        }
        if let Some(time) = time {
            self.times.insert(name.clone(), time);
            self.order.insert((time, name.clone()));
        }
    }

    /// The earliest time.
    pub fn first(&self) -> Option<Duration> {
        self.order.first().map(|(time, _)| *time)
    }

    /// The Applications whose time has come.
    pub fn due(&self, now: Duration) -> BTreeSet<AppName> {
        self.order.iter().take_while(|(time, _)| *time <= now).map(|(_, name)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_a_new_time_replaces_the_old_one() {
        let mut alarms = Alarms::default();
        let name = |text| AppName::parse(text, "argocd");
        let second = Duration::from_secs;
        alarms.set(&name("a"), Some(second(3)));
        alarms.set(&name("b"), Some(second(2)));
        assert_eq!(alarms.first(), Some(second(2)));
        alarms.set(&name("b"), Some(second(9)));
        assert_eq!(alarms.first(), Some(second(3)));
        assert_eq!(alarms.due(second(4)), BTreeSet::from([name("a")]));
        alarms.set(&name("a"), None);
        alarms.set(&name("b"), None);
        assert_eq!(alarms.first(), None);
    }
}
