//! What would make the job useless or harmful, found before anything is changed. Pure.

use kit::{error::Error, version::Version};

use crate::{
    expected::Expected,
    install::Install,
    origin::{self, CONFIG, JITTER, PERIOD, REF_AGE, Setting},
    period,
    plan::Settings,
    rollout,
    wanted::Wanted,
    workload::Component,
};

/// Leaves out a jitter that this version does not know, if leaving it out is the same.
///
/// # Errors
/// When the version has no jitter and one is asked for; exit code 2.
pub fn known_to(version: Version, mut settings: Settings) -> Result<Settings, Error> {
    if period::has_jitter(version) {
        return Ok(settings);
    }
    match settings.jitter.take() {
        Some(Wanted::Written(text)) if text != "0s" => {
            Err(Error::usage("no-jitter", format!("Argo CD {version} has no jitter: it would ignore `{text}`"))
                .hint("leave --jitter out; v2.10 and newer have it"))
        }
        Some(Wanted::Default) => Ok(Settings { jitter: Some(Wanted::Default), ..settings }),
        _ => Ok(settings),
    }
}

/// Refuses what nothing would read: a setting that the pods take from elsewhere than `argocd-cm`, unless they have the
/// wanted value from there.
///
/// # Errors
/// Names the workload and where it takes the value from; exit code 2.
pub fn reads_config(install: &Install, version: Version, settings: &Settings, expected: Expected) -> Result<(), Error> {
    let checks: [(Component, Setting, bool); 3] = [
        (Component::Controller, PERIOD, settings.period.is_some()),
        (Component::Controller, JITTER, settings.jitter.is_some() && period::has_jitter(version)),
        (Component::RepoServer, REF_AGE, settings.period.is_some()),
    ];
    for (component, setting, asked) in checks {
        let workload = install.workload(component);
        let Some(container) = workload.container(component).filter(|_| asked) else { continue };
        let origin = origin::of(container, setting);
        if origin.is_config(setting) {
            continue;
        }
        if let Some(value) = origin.fixed() {
            let has = Expected::new(version, value.as_deref(), value.as_deref());
            let same = match setting {
                PERIOD => has.period_s == expected.period_s,
                JITTER => has.jitter_s == expected.jitter_s,
                _ => has.ref_age_s == expected.ref_age_s,
            };
            if same {
                continue;
            }
        }
        let owner = origin::owner(&workload.meta);
        let hint = match &owner {
            Some(owner) if owner.starts_with("the operator") => {
                format!("it belongs to {owner}: change it there (`spec.controller.appSync`)")
            }
            Some(owner) => format!("it belongs to {owner}: change it there"),
            None => format!("make it read `{}` of {CONFIG} again, as the stock manifests do", setting.key),
        };
        return Err(Error::usage(
            "not-read",
            format!("{CONFIG} would have no effect: {workload} takes `{}` from {origin}", setting.key),
        )
        .hint(hint));
    }
    Ok(())
}

/// Refuses refreshes that no controller would ever answer.
///
/// # Errors
/// Names the workload; exit code 2.
pub fn answers(install: &Install) -> Result<(), Error> {
    if install.controller.replicas > 0 {
        return Ok(());
    }
    let message = format!("{} has 0 replicas: nobody would refresh an Application", install.controller);
    Err(Error::usage("nobody-answers", message).hint("scale it up first"))
}

/// Refuses a restart that would replace no pod.
///
/// # Errors
/// Names the workload and what is in the way; exit code 2.
pub fn restarts(install: &Install, component: Component) -> Result<(), Error> {
    let workload = install.workload(component);
    if let Some(why) = rollout::obstacle(workload) {
        return Err(Error::usage("cannot-restart", why)
            .hint("change that, or use --no-restart, replace the pods yourself and run the same command again"));
    }
    if workload.replicas == 0 {
        return Err(Error::usage("no-replicas", format!("{workload} has 0 replicas: no {component} runs"))
            .hint("scale it up, or use --no-restart"));
    }
    Ok(())
}
