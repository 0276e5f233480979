//! Whether what was asked for is in force in every controller pod. Pure.

use kit::error::Error;

use crate::{
    expected::Expected,
    install::Install,
    observe::ControllerPod,
    origin::{self, CONFIG, JITTER, PERIOD},
    plan::Change,
};

/// Judges `argocd-cm` as it is after the restarts, and the pods.
///
/// # Errors
/// When somebody changed the values meanwhile or a pod runs with others (exit code 1), or a pod proves nothing (3).
pub fn of(
    install: &Install,
    change: &Change,
    expected: Expected,
    controllers: &[ControllerPod],
    drift: &[String],
) -> Result<(), Error> {
    for (setting, key) in [(PERIOD, &change.period), (JITTER, &change.jitter)] {
        let now = install.value(setting.key);
        if now != key.after.as_deref() {
            let by = origin::changed_by(&install.config, setting.key).map(|by| format!(", by {by}"));
            let now = now.map_or_else(|| "unset".into(), |value| format!("`{value}`"));
            let by = by.unwrap_or_default();
            let owner = origin::owner(&install.config.metadata);
            let hint = owner.map(|owner| format!("it belongs to {owner}: change it there"));
            return Err(Error::no(
                "changed-meanwhile",
                format!("{CONFIG} was changed meanwhile{by}: {} is {now}", setting.key),
            )
            .hint(hint.unwrap_or_else(|| "run the command again when nobody else changes it".into())));
        }
    }
    let answer = |wanted: Option<bool>| controllers.iter().find(|pod| expected.of_controller(pod) == wanted);
    if let Some(pod) = answer(Some(false)) {
        let why = drift.iter().find(|line| line.contains(&pod.name)).cloned().unwrap_or_default();
        return Err(Error::no("not-in-force", why).hint("`kubectl argo-resync` shows where each value comes from"));
    }
    if let Some(pod) = answer(None) {
        let message = format!("what controller pod {} runs with cannot be proven: {}", pod.name, pod.proof.how);
        return Err(Error::unknown("unproven", message).hint("--restart makes new pods, whose logs begin with it"));
    }
    Ok(())
}
