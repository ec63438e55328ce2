//! The docs against the program: the commands of the pages are run between real API servers, the tables of
//! `docs/reference/` are compared with the code, links are followed, and `examples/` are applied.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "docs/bench.rs"]
mod bench;
#[path = "docs/configs.rs"]
mod configs;
#[path = "docs/console.rs"]
mod console;
#[path = "docs/figures.rs"]
mod figures;
#[path = "docs/flags.rs"]
mod flags;
#[cfg(feature = "init")]
#[path = "docs/init.rs"]
mod init;
#[path = "docs/init_manifests.rs"]
mod init_manifests;
#[path = "docs/install.rs"]
mod install;
#[path = "docs/kcp.rs"]
mod kcp;
#[path = "docs/layout.rs"]
mod layout;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/marks.rs"]
mod marks;
#[path = "docs/pages.rs"]
mod pages;
#[path = "docs/permissions.rs"]
mod permissions;
#[cfg(feature = "publish")]
#[path = "docs/provider_workspaces.rs"]
mod provider_workspaces;
#[path = "docs/recipes.rs"]
mod recipes;
#[path = "docs/roles.rs"]
mod roles;
#[path = "docs/scripts.rs"]
mod scripts;
#[path = "docs/shell.rs"]
mod shell;
