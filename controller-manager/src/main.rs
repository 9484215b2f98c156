//! The binary `kube-controller-manager`: the host with the built-in controllers and the sandbox.

use kcm_controller_manager::Host;
// Naming the crate links it, and with it the built-in controllers of all areas.
#[cfg(feature = "builtin")]
use kcm_controllers as _;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    let host = Host::default();
    #[cfg(feature = "sandbox")]
    let host = host.subcommand(sandbox::SUBCOMMAND);
    host.main()
}

#[cfg(feature = "sandbox")]
mod sandbox {
    use kcm_controller_manager::{Action, Exit, Failure, HttpsPort, Invocation, Subcommand};
    use kcm_framework::{BoxFuture, Manager};
    use kcm_sandbox_cli::{Command, ManagerPort, RunError};

    pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
        name: "sandbox",
        usages: kcm_sandbox_cli::USAGES,
        rows: kcm_sandbox_cli::ROWS,
        file_after: None,
        quiet: true,
        run,
    };

    fn run(Invocation { settings, manager }: Invocation) -> Result<Action, Vec<String>> {
        Ok(match kcm_sandbox_cli::command(&settings, manager)? {
            Command::Print(text) => Action::Print(text),
            Command::Run(mut sandbox) => {
                if let Some(port) = HttpsPort::bind(&settings)? {
                    let (url, page) = (port.url(), port.page());
                    let serve = Box::new(|manager: &Manager, stop| -> BoxFuture<'static, _> {
                        Box::pin(port.serve(manager, stop))
                    });
                    *sandbox = sandbox.port(ManagerPort { url, page, serve });
                }
                Action::Run(Box::new(|stop| {
                    Box::pin(async move {
                        sandbox.run(stop).await.map_err(|ended| match ended {
                            RunError::Refused(reasons) => Failure { exit: Exit::Refused, reasons },
                            RunError::Failed(reasons) => Failure { exit: Exit::ApiServer, reasons },
                        })
                    })
                }))
            }
        })
    }
}
