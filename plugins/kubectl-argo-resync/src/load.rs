//! How long a commit may stay unseen, and how much asking a period makes. Pure.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The longest time in seconds until polling sees a commit: a tick whose random delay is shorter than the last one finds
/// nothing expired and the next one counts, and the Git refs that it reads may be as old as the repo-server lets them
/// be. `None`: never.
pub fn worst_case_s(period_s: u64, jitter_s: Option<u64>, ref_age_s: u64) -> Option<u64> {
    (period_s > 0).then(|| 2 * period_s + jitter_s.unwrap_or(0) + ref_age_s)
}

/// Comparisons and Git requests an hour, at most, for these Applications; each with the URLs of its sources.
pub fn an_hour(period_s: u64, ref_age_s: u64, repositories: &[String]) -> Value {
    let distinct: BTreeSet<_> =
        repositories.iter().flat_map(|urls| urls.split(' ')).filter(|url| !url.is_empty()).collect();
    let per_hour = |every_s: u64| if period_s == 0 { 0 } else { 3600_u64.div_ceil(every_s.max(1)) };
    let applications = u64::try_from(repositories.len()).unwrap_or(u64::MAX);
    let count = u64::try_from(distinct.len()).unwrap_or(u64::MAX);
    json!({
        "applications": applications,
        "repositories": count,
        "comparisons_per_hour": applications.saturating_mul(per_hour(period_s)),
        "git_requests_per_hour": count.saturating_mul(per_hour(period_s.max(ref_age_s))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_is_twice_the_period_and_the_jitter_and_the_age_of_the_refs() {
        assert_eq!(worst_case_s(120, Some(60), 180), Some(480));
        assert_eq!(worst_case_s(30, None, 30), Some(90));
        assert_eq!(worst_case_s(0, Some(60), 86_400), None);
    }

    #[test]
    fn git_is_asked_once_for_each_repository_as_long_as_its_refs_are_fresh() {
        let apps = ["a", "a", "b c", ""].map(str::to_owned);
        let load = an_hour(30, 60, &apps);
        assert_eq!(load["applications"], 4);
        assert_eq!(load["repositories"], 3);
        assert_eq!(load["comparisons_per_hour"], 480);
        assert_eq!(load["git_requests_per_hour"], 180);
        assert_eq!(an_hour(0, 86_400, &apps)["comparisons_per_hour"], 0);
    }
}
