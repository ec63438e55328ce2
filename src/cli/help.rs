//! The help texts. A test holds [`RUN`] against the flags that are known.

/// Of the program.
pub(super) const PROGRAM: &str = "\
Usage: edge-syncer <command>

Keeps objects of an edge Kubernetes cluster in step with its mailbox workspace on a hub.

Commands:
  run        sync until stopped by SIGTERM or SIGINT (edge-syncer run --help for its flags)
  version    print the version; also -V, --version
  help       print this text, or with 'run' after it the flags of run; also -h, --help

Called by the name syncer it takes the flags of run and no command, as the Go syncer does.
";

/// Of `run`: the flags in groups, the environment, one example.
pub(super) const RUN: &str = "\
Usage: edge-syncer run --from-kubeconfig=FILE --sync-target-uid=UID [flags]

Syncs between the hub and the edge until stopped by SIGTERM or SIGINT.

Connection:
  --from-kubeconfig FILE      kubeconfig file of the hub (required)
  --from-context NAME         context in it (default: its current context)
  --to-kubeconfig FILE        kubeconfig file of the edge (default: the service account of the pod)
  --to-context NAME           context in it (default: its current context)
  --qps NUMBER                requests per second to each side (default: 30, but no limit at an edge with API priority
                              and fairness; negative: no limit)
  --burst NUMBER              requests that may be sent at once to each side (default: 20)

Identity:
  --sync-target-uid UID       UID of the sync target (required)
  --sync-target-name NAME     name of the sync target, for the log
  --former-sync-target-uid UID
                              UID that the sync target had before, or of a syncer that is gone for good, whose copies
                              are taken over (repeatable)

Sync:
  --mode watch|poll           how changes at the hub are found (default: watch)
  --edge-mode watch|poll      how changes at the edge are found (default: watch)
  --poll-interval DURATION    time between two looks where the mode is poll (default: 15s; at least 1s)
  --status-interval DURATION  shortest time between two writes of one object's status to the hub (default: 1s; 0s: every
                              change)
  --heartbeat-interval DURATION
                              time between two heartbeats on the configs at the hub (default: 1m; at least 1s; 0s: none)
  --queue-capacity NUMBER     objects that may wait for their turn in memory; others are looked up again later (default:
                              1024; at least 32)
  --take-back-from NAMES      field managers whose fields, beside those that the hub sets, are taken back at the edge
                              (default: kubectl,kubectl-*; empty: nobody; trailing * for all names that begin so;
                              repeatable)

Safety:
  --hold-deletes-above NUMBER hold deletes that are more than so many, and more than half of all copies, at once
                              (default: 20)
  --hold-deletes-for DURATION how long they are held unless they are confirmed (default: 10m; 0s: none are held)
  --delete-adopted            delete objects that were there before when their hub objects go, instead of releasing them
                              (also =true, =false)

Bounds:
  --deny RESOURCE[.GROUP]     never sync objects of this type, such as secrets, deployments.apps or *.example.org
                              (repeatable)
  --allow-namespace NAME      write namespaced objects, and create namespaces, only here (trailing * for all names that
                              begin so; repeatable)
  --deny-namespace NAME       never write here, even if allowed (trailing * for all names that begin so; repeatable)
  --filter-file FILE          file with one 'deny secrets', 'allow-namespace shop-*' or 'deny-namespace kube-*' a line,
                              and # comments
  --allow-system              let configs write into kube-system, the syncer's own namespace and its roles, and send up
                              the Secrets there, as the Go syncer did (also =true, =false)

High availability:
  --leader-elect              sync only while holding a Lease at the edge, so that one of several syncers is active
                              (also =true, =false)
  --lease-duration DURATION   how long that Lease lasts when its holder is gone (default: 15s; 3s to 1h)

Monitoring:
  --listen-address [IP]:PORT  where to serve /healthz, /livez, /readyz and /metrics over plain HTTP, such as :8080
                              (every address), localhost:8080 or 10.0.0.1:8080 (default: nothing is served)

Logging:
  -v, --v NUMBER              up to 3 info, 4 and 5 debug, 6 and more trace (default: 0)
  The other logging flags of the Go syncer are accepted without effect: --vmodule, --logtostderr, --alsologtostderr,
  --stderrthreshold, --log_dir, --log_file, --log_file_max_size, --log_backtrace_at, --one_output, --add_dir_header,
  --skip_headers, --skip_log_headers.

Others:
  -h, --help                  print this text
  -V, --version               print the version

Flags may be written as --flag value or --flag=value; durations as 500ms, 15s, 1m30s or 2h.

Environment:
  EDGE_SYNCER_LOG, RUST_LOG   log filter, such as debug or edge_syncer=debug; the first that is set counts (default:
                              warn,edge_syncer=info)
  NAMESPACE                   namespace that the syncer runs in (default: that of its pod's service account)
  HOSTNAME                    part of the name of a Lease's holder
  ENABLE_DENATURING           false turns the conversions of EdgeSyncConfigs off
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
                              proxy for servers other than this machine, where the kubeconfig has no proxy-url
  SSL_CERT_FILE               root certificates, where the kubeconfig has no certificate-authority

Example:
  edge-syncer run --from-kubeconfig=hub.kubeconfig --to-kubeconfig=edge.kubeconfig --sync-target-uid=site-7

Exit codes: 0 stopped by a signal, 1 failed while running, 2 wrong usage or unusable configuration.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_as_wide_as_a_terminal_of_today() {
        for line in PROGRAM.lines().chain(RUN.lines()) {
            assert!(line.len() <= 120, "{line}");
        }
    }

    #[test]
    fn has_its_groups_in_the_order_of_need() {
        let heads: Vec<&str> = RUN
            .lines()
            .filter_map(|line| line.strip_suffix(':').filter(|head| !head.starts_with(' ')))
            .collect();
        let expected = [
            "Connection",
            "Identity",
            "Sync",
            "Safety",
            "Bounds",
            "High availability",
            "Monitoring",
            "Logging",
            "Others",
            "Environment",
            "Example",
        ];
        assert_eq!(heads, expected);
        assert!(RUN.lines().next().is_some_and(|usage| usage.len() < 80));
    }
}
