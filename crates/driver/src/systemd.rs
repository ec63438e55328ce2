//! What is sent to systemd from a service of `Type=notify`: datagrams to the socket that `NOTIFY_SOCKET` names
//! (`sd_notify(3)`).
//!
//! Promises: nothing is sent unless it was asked for; that the program is alive is sent only after the shell's loop
//! has answered, so that a loop that hangs is noticed; nothing here waits for the reader of the socket, and what finds
//! no room there is sent again.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use kube_lite::logging::log_line;
use tokio::time::sleep;

use crate::serve::{Desk, HealthQuery};

/// How old a status may be.
const STATUS_AGE: Duration = Duration::from_secs(10);

/// What the environment says about the service manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `NOTIFY_SOCKET`.
    pub socket: Option<OsString>,
    /// How often it wants to be notified that the loop runs: half of `WATCHDOG_USEC`, if that is meant for this
    /// process.
    pub watchdog: Option<Duration>,
}

impl Asked {
    /// Reads the variables; `id` is that of this process, which `WATCHDOG_PID` names if the watchdog is for it.
    pub fn from(variable: impl Fn(&str) -> Option<OsString>, id: u32) -> Self {
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_for_us = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(u64::from(id));
        Self {
            socket: variable("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()),
            watchdog: number("WATCHDOG_USEC")
                .filter(|&micros| micros > 0 && is_for_us)
                .map(|micros| Duration::from_micros(micros) / 2),
        }
    }
}

/// The connection to the service manager.
pub struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl Manager {
    /// `None` if nothing was asked for, or nothing can be sent.
    pub fn reach(asked: &Asked) -> Option<Self> {
        let name = asked.socket.as_deref()?;
        match open(name) {
            Ok((socket, address)) => Some(Self {
                socket,
                address,
                watchdog: asked.watchdog,
            }),
            Err(error) => {
                log_line!(
                    Warn,
                    ServiceManagerUnreachable,
                    "NOTIFY_SOCKET cannot be used, the service manager is not notified",
                    error = error
                );
                None
            }
        }
    }

    /// Sends that the program is about to end.
    pub fn stopping(&self) {
        let _ = self.say("STOPPING=1\nSTATUS=stopping");
    }

    /// Sends that the program has started, and from then on its state, for as long as it is polled. `clock` gives the
    /// time since 1970.
    pub async fn report(&self, desk: &Desk, clock: fn() -> Duration) {
        let mut said = String::new();
        let mut is_ready = self.say("READY=1\nSTATUS=starting").is_ok();
        loop {
            let now = clock();
            let status = desk.ask(|answer| HealthQuery::Status { now, answer }).await;
            let status = status.unwrap_or_else(|| "standing by".to_owned());
            let mut message = String::from(if is_ready { "" } else { "READY=1\n" });
            if self.watchdog.is_some() {
                message.push_str("WATCHDOG=1\n");
            }
            if status != said {
                message.push_str("STATUS=");
                message.push_str(&status);
            }
            if !message.is_empty() && self.say(&message).is_ok() {
                said = status;
                is_ready = true;
            }
            sleep(self.watchdog.unwrap_or(STATUS_AGE).min(STATUS_AGE)).await;
        }
    }

    fn say(&self, message: &str) -> io::Result<()> {
        let sent = self.socket.send_to_addr(message.as_bytes(), &self.address);
        sent.map(drop)
    }
}

/// A path, or after an `@` a name without a file.
fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => {
            let why = format!("{}: it must be a path, or a name after an @", name.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_manager_wants_to_know() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (variables, socket, watchdog) in [
            (&[][..], None, None),
            (&[("NOTIFY_SOCKET", "")], None, None),
            (
                &[("NOTIFY_SOCKET", "@a"), ("WATCHDOG_USEC", "180000000")],
                Some("@a"),
                seconds(90),
            ),
            (&[("WATCHDOG_USEC", "4000000"), ("WATCHDOG_PID", "7")], None, seconds(2)),
            (&[("WATCHDOG_USEC", "4000000"), ("WATCHDOG_PID", "8")], None, None),
            (&[("WATCHDOG_USEC", "4000000"), ("WATCHDOG_PID", "x")], None, None),
            (&[("WATCHDOG_USEC", "0")], None, None),
            (&[("WATCHDOG_USEC", "soon")], None, None),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let expected = Asked {
                socket: socket.map(OsString::from),
                watchdog,
            };
            assert_eq!(Asked::from(variable, 7), expected, "{variables:?}");
        }
    }

    /// A socket of ours, and a manager that writes to it.
    fn manager(watchdog: Option<Duration>) -> (UnixDatagram, Manager) {
        let name = format!("edge-syncer-test-{:x}", fastrand::u64(..));
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let asked = Asked {
            socket: Some(format!("@{name}").into()),
            watchdog,
        };
        (socket, Manager::reach(&asked).unwrap())
    }

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 4096];
        let next = || {
            socket
                .recv(&mut buffer)
                .map(|length| String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        std::iter::repeat_with(next).map_while(Result::ok).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_turn_is_not_said_to_live() {
        let second = Duration::from_secs(1);
        let (socket, manager) = manager(Some(second));
        let desk = Desk::default();
        let mut questions = desk.open();
        let turning = async {
            for _ in 0..5 {
                if let Some(HealthQuery::Status { answer, .. }) = questions.recv().await {
                    answer.send("0 synced".to_owned()).unwrap();
                }
            }
            sleep(60 * second).await;
        };
        tokio::select! {
            () = manager.report(&desk, || Duration::ZERO) => {}
            () = turning => {}
        }
        let heard = heard(&socket);
        assert_eq!(heard[0], "READY=1\nSTATUS=starting");
        assert_eq!(heard[1], "WATCHDOG=1\nSTATUS=0 synced");
        assert_eq!(heard[2..], ["WATCHDOG=1\n"; 4], "it has turned five times");
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_lives_too_and_nothing_is_said_twice() {
        let (socket, manager) = manager(None);
        let desk = Desk::default();
        let said = manager.report(&desk, || Duration::ZERO);
        tokio::time::timeout(Duration::from_secs(600), said).await.unwrap_err();
        assert_eq!(heard(&socket), ["READY=1\nSTATUS=starting", "STATUS=standing by"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_room_is_said_again() {
        let (socket, manager) = manager(None);
        drop(socket);
        let (socket, other) = self::manager(None);
        let manager = Manager {
            address: other.address,
            ..manager
        };
        // The queue of a socket that nobody reads has room for a few datagrams.
        while manager.say("x").is_ok() {}
        let desk = Desk::default();
        let said = manager.report(&desk, || Duration::ZERO);
        let reading = async {
            sleep(Duration::from_secs(60)).await;
            assert!(heard(&socket).iter().all(|message| message == "x"));
            sleep(Duration::from_secs(60)).await;
        };
        tokio::select! {
            () = said => {}
            () = reading => {}
        }
        assert_eq!(heard(&socket), ["READY=1\nSTATUS=standing by"]);
    }

    #[test]
    fn a_socket_of_another_kind_is_not_used() {
        for name in ["vsock:2:1234", "relative", "/a\0b"] {
            assert!(open(OsStr::new(name)).is_err(), "{name}");
        }
    }
}
