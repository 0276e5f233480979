//! Names of Applications that do not exist.

use kit::{cluster::Cluster, error::Error};

use crate::{api, scope::Scope, view::View};

/// Names that do not exist are a wrong call; those that nearly fit are the hint.
///
/// # Errors
/// For the first name that is not there; exit code 2.
pub async fn check(cluster: &Cluster, scope: &Scope, views: &[Box<View>]) -> Result<(), Error> {
    let Some(name) = scope.names().iter().find(|name| !views.iter().any(|view| view.name() == **name)) else {
        return Ok(());
    };
    let message = format!("no Application {name} (context {})", cluster.context);
    let near = near(&name.name, api::names(cluster, &name.namespace).await);
    let hint = if near.is_empty() {
        format!(
            "`kubectl get applications.argoproj.io -n {}` lists them; NAMESPACE/NAME names one elsewhere",
            name.namespace
        )
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Err(Error::usage("not-found", message).hint(hint))
}

/// The names that are most like `name`, or contain it.
fn near(name: &str, names: Vec<String>) -> Vec<String> {
    let mut near: Vec<(f64, String)> = names
        .into_iter()
        .map(|other| (strsim::normalized_damerau_levenshtein(name, &other), other))
        .filter(|(likeness, other)| *likeness > 0.6 || other.contains(name))
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_alike_are_offered() {
        let names = || ["evt", "evt-prod", "billing"].map(str::to_owned).to_vec();
        assert_eq!(near("evr", names()), ["evt"]);
        assert_eq!(near("prod", names()), ["evt-prod"]);
        assert_eq!(near("zzz", names()), [""; 0]);
    }
}
