//! URLs as people write them into kubeconfigs.
//!
//! Promises: what is accepted is used exactly as it is written; each part is checked, since [`http::Uri`] treats an
//! invalid port as no port, drops what follows a `#`, and allows more characters than names can have. No message holds
//! user information.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;

/// The longest name in DNS, and the longest part of one.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// The URL of an API server: scheme, host, perhaps port and path. The error says what is wrong.
pub(super) fn server(text: &str) -> Result<Uri, String> {
    let why = |why: String| format!("{:?}: {why}", for_people(text));
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return Err(why("it must start with https:// or http://".to_owned()));
    };
    // Wherever the @ is: in a password there may be a slash.
    if rest.contains('@') {
        return Err(why(
            "it must not hold a user name or password: put them into the user entry".to_owned(),
        ));
    }
    if let Some(mark) = rest.find(['?', '#']) {
        let what = if rest[mark..].starts_with('?') {
            "query"
        } else {
            "fragment"
        };
        return Err(why(format!("it must not have a {what}")));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    check_authority(authority).map_err(why)?;
    check_path(path).map_err(why)?;
    format!("{}://{rest}", scheme.to_ascii_lowercase())
        .parse()
        .map_err(|error| why(format!("{error}")))
}

/// The URL of a proxy, which may hold user information. The error shows nothing of it: what cannot be parsed may hold a
/// password anywhere.
pub(super) fn proxy(text: &str) -> Result<Uri, String> {
    let schemes = "it must be a URL with http://, https://, socks5:// or socks5h://";
    let (scheme, rest) = text.split_once("://").ok_or(schemes)?;
    if !["http", "https", "socks5", "socks5h"].contains(&scheme) {
        return Err(schemes.to_owned());
    }
    let address = rest.strip_suffix('/').unwrap_or(rest);
    let address = address.rsplit_once('@').map_or(address, |(_, address)| address);
    if address.contains(['/', '?', '#']) {
        return Err("it must end after the port".to_owned());
    }
    check_authority(address).map_err(|_| "its host or port cannot be used")?;
    text.parse().map_err(|error| format!("{error}"))
}

/// A host and perhaps a port.
pub(crate) fn check_authority(authority: &str) -> Result<(), String> {
    let port = if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or("the ] after the IPv6 address is missing")?;
        if address.parse::<Ipv6Addr>().is_err() {
            return Err(format!("[{address}] is no IPv6 address"));
        }
        port
    } else {
        let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        if port.matches(':').count() > 1 {
            return Err("an IPv6 address must stand in [ ]".to_owned());
        }
        check_host(host)?;
        port
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok(()),
        Some(port) => check_port(port),
        None => Err(format!("{port:?} after the address is no port")),
    }
}

fn check_port(port: &str) -> Result<(), String> {
    if port.is_empty() {
        return Err("there is no port after the colon".to_owned());
    }
    // Parsing alone would take a plus sign.
    let number: u16 = if port.bytes().all(|byte| byte.is_ascii_digit()) {
        port.parse().unwrap_or_default()
    } else {
        0
    };
    match number {
        0 => Err(format!("port {port:?} is no number from 1 to 65535")),
        _ => Ok(()),
    }
}

fn check_host(host: &str) -> Result<(), String> {
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(is_allowed)
    };
    if name.len() > LONGEST_NAME || !name.split('.').all(is_label) {
        return Err(format!("{host:?} is no host name and no address"));
    }
    // What ends in a number is an address for resolvers, also `10.1` and `0x7f000001`.
    let last = name.rsplit('.').next().unwrap_or_default();
    let digits = last.bytes().all(|byte| byte.is_ascii_digit());
    if (digits || last.starts_with("0x") || last.starts_with("0X")) && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!("{host:?} is no IPv4 address"));
    }
    Ok(())
}

/// Checks a path, which becomes a part of each request.
fn check_path(path: &str) -> Result<(), String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(());
    }
    for segment in path.split('/') {
        let is_dots = matches!(segment.replace("%2e", ".").replace("%2E", ".").as_str(), "." | "..");
        if segment.is_empty() || is_dots {
            return Err(format!("its path must not have {segment:?} between slashes"));
        }
        if let Some(c) = segment.chars().find(|c| !is_path_character(*c)) {
            return Err(format!("its path must not have {c:?}"));
        }
        let mut escapes = segment.split('%').skip(1);
        if !escapes.all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())) {
            return Err("in its path a % must have two hexadecimal digits after it".to_owned());
        }
    }
    Ok(())
}

/// RFC 3986.
fn is_path_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:%".contains(c)
}

fn is_scheme(text: &str) -> bool {
    text.eq_ignore_ascii_case("https") || text.eq_ignore_ascii_case("http")
}

/// Any text that should be a URL, without what may be a secret: all before the last `@`, and after a `?` or `#`.
fn for_people(url: &str) -> String {
    let start = url.find("//").map_or(0, |at| at + 2);
    let (scheme, rest) = url.split_at(start);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    match rest.find(['?', '#']) {
        Some(end) => format!("{scheme}{}...", &rest[..=end]),
        None => format!("{scheme}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_urls_of_servers() {
        for url in [
            "https://hub.example",
            "https://hub.example/",
            "https://hub.example.:6443",
            "HTTPS://Hub_1.example:6443",
            "http://localhost:8080",
            "https://10.0.0.1:1",
            "https://[::1]:65535/clusters/root:org:ws/",
            "https://[2001:db8::1]",
            "https://h/clusters/a%2Fb/~x.y",
        ] {
            assert!(server(url).is_ok(), "{url}: {:?}", server(url));
        }
        assert_eq!(server("HTTPS://h:6443/x").unwrap().to_string(), "https://h:6443/x");
    }

    #[test]
    fn checks_every_part_of_a_servers_url() {
        let long = format!("https://{}", "a.".repeat(127) + "b");
        for (url, why) in [
            ("https://host:99999", "port \"99999\" is no number from 1 to 65535"),
            ("https://host:65536/x", "port \"65536\" is no number"),
            ("https://host:0", "port \"0\" is no number"),
            ("https://host:+443", "port \"+443\" is no number"),
            ("https://host:six", "port \"six\" is no number"),
            ("https://host:", "there is no port after the colon"),
            ("https://[::1]:99999", "port \"99999\" is no number"),
            ("https://[::1]x", "\"x\" after the address is no port"),
            ("https://[::1", "the ] after the IPv6 address is missing"),
            ("https://[fe80::1%25eth0]", "is no IPv6 address"),
            ("https://[10.0.0.1]", "is no IPv6 address"),
            ("https://::1:6443", "must stand in [ ]"),
            ("https://", "the host is missing"),
            ("https://:6443", "the host is missing"),
            ("https:///x", "the host is missing"),
            ("https://a..b", "is no host name"),
            ("https://-a b", "is no host name"),
            ("https://ho$t", "is no host name"),
            ("https://h\\x", "is no host name"),
            ("https://h\u{f6}st", "is no host name"),
            (&long, "is no host name"),
            ("https://10.0.0.300", "is no IPv4 address"),
            ("https://10.1", "is no IPv4 address"),
            ("https://0x7f000001", "is no IPv4 address"),
            ("https://h/a//b", "\"\" between slashes"),
            ("https://h/a/../b", "\"..\" between slashes"),
            ("https://h/%2E./b", "\"%2E.\" between slashes"),
            ("https://h/{workspace}", "must not have '{'"),
            ("https://h/a b", "must not have ' '"),
            ("https://h/%zz", "two hexadecimal digits"),
            ("https://h/%2", "two hexadecimal digits"),
            ("https://h/x?a=b", "it must not have a query"),
            ("https://h/x#y", "it must not have a fragment"),
            ("ftp://h", "it must start with https:// or http://"),
            ("h:6443", "it must start with https:// or http://"),
            ("https:/h", "it must start with https:// or http://"),
            ("", "it must start with https:// or http://"),
        ] {
            let words = server(url).expect_err(url);
            assert!(words.contains(why), "{url}: {words}");
        }
    }

    #[test]
    fn shows_no_user_information() {
        for url in [
            "https://me:secret@hub.example",
            "https://secret@hub.example/x",
            "https://me:sec/secret@hub.example",
            "https://me:secret?@hub.example",
            "me:secret@hub.example",
            "https:/me:secret@hub.example",
            "https://hub.example/?token=secret",
            "https://hub.example/#secret",
        ] {
            let words = server(url).expect_err(url);
            assert!(words.contains("hub.example") && !words.contains("secret"), "{words}");
        }
        let words = server("https://me:secret@hub.example").unwrap_err();
        assert!(words.contains("must not hold a user name or password"), "{words}");
    }

    #[test]
    fn checks_every_part_of_a_proxys_url_and_shows_nothing_of_it() {
        for url in [
            "http://proxy",
            "socks5://me:p@ss@proxy:1080",
            "https://[::1]:3128/",
            "socks5h://10.0.0.1",
        ] {
            assert!(proxy(url).is_ok(), "{url}: {:?}", proxy(url));
        }
        for url in [
            "proxy.example:3128",
            "ftp://proxy.example",
            "http://secret@proxy.example:99999",
            "http://me:secret",
            "http://me:secret @proxy.example",
            "http://secret@proxy.example/x",
            "http://proxy.example?x=secret",
            "http://",
        ] {
            let words = proxy(url).expect_err(url);
            assert!(!words.contains("secret") && !words.contains("example"), "{words}");
        }
    }
}
