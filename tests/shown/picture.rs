//! A picture of a page, as headless Chromium shows it.

use std::path::Path;

use tokio::process::Command;

/// The size of the picture: two phones beside each other.
const SIZE: [u32; 2] = [1000, 760];

/// Draws the page to a file, in light and in dark beside each other.
pub(crate) async fn draw(page: &str, to: &Path) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let [width, height] = SIZE;
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |scheme: &str| format!("<iframe style=\"color-scheme:{scheme}\" srcdoc=\"{page}\"></iframe>");
    let both = format!(
        "<!doctype html><meta charset=utf-8><style>body{{margin:0;display:flex}}\
         iframe{{border:0;background:Canvas;width:{}px;height:{height}px}}</style>{}{}",
        width / 2,
        frame("light"),
        frame("dark")
    );
    let file = folder.path().join("both.html");
    std::fs::write(&file, both).expect("the folder can be written");
    // Its sandbox needs what is not there for root or in a container; the page is ours.
    let output = Command::new(std::env::var_os("CHROMIUM_BIN").unwrap_or_else(|| "chromium".into()))
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--screenshot={}", to.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .await
        .expect("Chromium can be started");
    let drawn = std::fs::read(to).unwrap_or_default();
    assert!(drawn.starts_with(b"\x89PNG") && drawn.len() > 10_000, "{output:?}");
}
