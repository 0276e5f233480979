//! Runs the stand-in until it is interrupted: `cargo run -p standin`.
//!
//! Prints one JSON object, `{"kubeconfig": …, "server": …, "git_root": …, "git_url": …, "service_ports": […]}`, once all
//! pods are ready, and removes its files when it ends.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use clap::{Parser, ValueEnum};
use serde_json::json;
use standin::{Install, LogFormat, Options, Standin};
use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
};

/// Run a Kubernetes API with Argo CD in it on the loopback address, until interrupted
#[derive(Parser)]
#[command(name = "standin")]
struct Arguments {
    /// Version of Argo CD
    #[arg(long, default_value = "v3.5.1")]
    argocd_version: String,
    /// Namespace of Argo CD
    #[arg(long, default_value = "argocd")]
    namespace: String,
    /// Kind of install
    #[arg(long, value_enum, default_value_t = Kind::Stock)]
    install: Kind,
    /// Name of the Helm release, or of the operator's ArgoCD object
    #[arg(long, default_value = "argocd")]
    release: String,
    /// Log format of the containers [default: that of the version]
    #[arg(long, value_enum)]
    log_format: Option<Format>,
    /// Replicas of the application controller
    #[arg(long, default_value_t = 1)]
    controllers: u32,
    /// Replicas of the repo-server
    #[arg(long, default_value_t = 1)]
    repo_servers: u32,
    /// Replicas of argocd-server
    #[arg(long, default_value_t = 1)]
    servers: u32,
    /// Key of argocd-cm and its value; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    setting: Vec<(String, String)>,
    /// How long a pod takes to start, in milliseconds
    #[arg(long, default_value_t = 500)]
    pod_start_ms: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Stock,
    Core,
    Helm,
    Operator,
    Dynamic,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Text,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("not of the form KEY=VALUE")?;
    Ok((key.into(), value.into()))
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the stand-in cannot run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> std::io::Result<()> {
    // The handlers are set first: an interrupt at any later moment still lets the folder be removed.
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = runtime.block_on(async {
        std::io::Result::Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    })?;
    let standin = Standin::try_with(options(arguments))?;
    let (http, https) = standin.cluster().service_ports;
    let about = json!({
        "kubeconfig": standin.kubeconfig(), "server": standin.server(), "git_root": standin.git_root(),
        "git_url": standin.git_url(""), "service_ports": {"http": http, "https": https},
    });
    println!("{about}");
    runtime.block_on(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    for route in standin.unknown_routes() {
        eprintln!("warning: the stand-in was asked for {route}, which it does not know");
    }
    standin.stop();
    Ok(())
}

fn options(arguments: Arguments) -> Options {
    let release = arguments.release;
    Options {
        version: arguments.argocd_version,
        namespace: arguments.namespace,
        log_format: arguments.log_format.map(|format| match format {
            Format::Json => LogFormat::Json,
            Format::Text => LogFormat::Text,
        }),
        controllers: arguments.controllers,
        repo_servers: arguments.repo_servers,
        servers: arguments.servers,
        install: match arguments.install {
            Kind::Stock => Install::Stock,
            Kind::Core => Install::Core,
            Kind::Helm => Install::Helm { release },
            Kind::Operator => Install::Operator { name: release },
            Kind::Dynamic => Install::Dynamic,
        },
        settings: arguments.setting.into_iter().collect::<BTreeMap<_, _>>(),
        pod_start: Duration::from_millis(arguments.pod_start_ms),
        ..Options::default()
    }
}
