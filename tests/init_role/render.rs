//! `init render` of what a config workspace has.

use std::process::{Command, Output};

use crate::objects::FACTS;
use crate::stage::Which;
use crate::support::Syncer;
use crate::support::manifests::documents;
use crate::world::World;

/// Runs it in the name of a user, with more flags.
fn render(world: &World, user: &str, flags: &[&str]) -> Output {
    let file = world.stage.kubeconfig(&world.folder, "", Some(user), |_| {});
    let mut program = Command::new(Syncer::program_with("init"));
    program.args(["init", "render", "--cluster-name=2abc", "--cluster-path=root:org:team"]);
    program.arg(format!("--kubeconfig={}", file.display()));
    program.arg(format!("--config-workspace={}", world.conf_path));
    program.args(flags).output().expect("it can be started")
}

pub(crate) async fn what_a_server_has_of_a_target_is_printed(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    let user = world.user.clone();
    let printed = render(&world, &user, &[]);
    assert_eq!(String::from_utf8_lossy(&printed.stderr), "");
    let objects = documents(&String::from_utf8_lossy(&printed.stdout));
    assert_eq!(
        (&objects[0]["kind"], &objects[1]["data"]["path"]),
        (&"Namespace".into(), &"root:org:team".into())
    );
    world.serve("bad", "a\n  {{ .Nothing }}").await;
    world.target("gone", "dev", &["not-there"]).await;
    let nobody = crate::stage::Stage::new_user();
    let rows: [(&str, &[&str], i32, &str); 5] = [
        (&user, &[], 1, "choose one with --target-name: bad, dev, gone"),
        (&user, &["--target-name=x"], 1, "there is no InitTarget x"),
        (
            &user,
            &["--target-name=bad"],
            1,
            "sources[0]: template bad, line 2, column 6",
        ),
        (&user, &["--target-name=gone"], 1, "there is no InitTemplate not-there"),
        (&nobody, &["--target-name=dev"], 1, "InitTargets cannot be read"),
    ];
    for (user, flags, code, words) in rows {
        let output = render(&world, user, flags);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {said}");
        assert!(
            said.contains(words) && said.trim_end().lines().count() == 1,
            "{flags:?}: {said}"
        );
        assert!(output.stdout.is_empty());
    }
    let output = render(&world, &user, &["--target-name=dev", "--kubeconfig=/nowhere"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
