//! The page that `report` makes, looked at in a browser.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::support::{fail, folder, path, succeed};

/// A folder with the page of the bundled slice.
fn page() -> (TempDir, String) {
    let folder = folder();
    let (out, page) = (path(&folder, "slice.ninfer"), path(&folder, "page.html"));
    succeed(&["pack", "-o", &out, "-q", "--assign", "pooler.*=W8G32_F16S"]);
    succeed(&["report", &format!("{out}.report.json"), "-o", &page]);
    (folder, page)
}

#[test]
fn the_page_needs_nothing_else() {
    let (_folder, page) = page();
    let text = fs::read_to_string(page).unwrap();
    for outside in ["src=", "href=", "@import", "url(", "fetch("] {
        assert!(!text.contains(outside), "{outside}");
    }
    assert_eq!(text.matches("<svg").count(), 3);
    assert_eq!(
        text.matches("<h2>Codes of <code>embeddings.position_embeddings.weight</code>, Q4G64_F16S").count(),
        1
    );
}

#[test]
fn names_are_escaped() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    let name = "<script>alert('&')</script>";
    crate::support::checkpoint(&input, &[(name, safetensors::Dtype::F32, &[1, 1], &[0, 0, 0x80, 0x3f])]);
    succeed(&["pack", &input, "-o", &out, "-q"]);
    let page = path(&folder, "page.html");
    succeed(&["report", &format!("{out}.report.json"), "-o", &page]);
    let text = fs::read_to_string(page).unwrap();
    assert!(!text.contains("<script>alert") && text.contains("&lt;script&gt;alert"));
}

#[test]
fn one_quantized_tensor_has_its_bar() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    let values: Vec<u8> = (0..130).flat_map(|value| (value as f32).to_le_bytes()).collect();
    crate::support::checkpoint(&input, &[("only.weight", safetensors::Dtype::F32, &[1, 130], &values)]);
    succeed(&["pack", &input, "-o", &out, "-q", "--default", "Q4G64_F16S"]);
    let page = path(&folder, "page.html");
    succeed(&["report", &format!("{out}.report.json"), "-o", &page]);
    let text = fs::read_to_string(page).unwrap();
    let figure = text.split("<figure").find(|figure| figure.contains("id=\"errors\"")).unwrap();
    let figure = figure.split("</figure").next().unwrap();
    assert!(figure.contains("only.weight"), "{figure}");
    let bar = figure.split("<rect").last().unwrap();
    let number = |name: &str| -> f64 {
        bar.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    assert!(number("height") > 0.0 && number("width") > 100.0, "{bar}");
}

#[test]
fn what_is_no_report_is_refused() {
    let (folder, page) = page();
    let report = path(&folder, "slice.ninfer.report.json");
    let text = fs::read_to_string(&report).unwrap();
    assert!(
        fail(1, &["report", &report, "-o", &page, "--tensor", "none"]).contains("choose another --tensor")
    );
    for (from, to, says) in [
        ("ninfer-report/1", "ninfer-report/2", "schema"),
        ("\"first\": -8", "\"first\": 2147483647", "a first code of 2147483647"),
        ("\"relative_rmse\": 0.1", "\"relative_rmse\": 1e3000", "number out of range"),
        ("\"relative_rmse\": 0.1", "\"relative_rmse\": 9e12, \"rest\": 0.1", "relative_rmse 9"),
        ("\"relative_rmse\": 0.1", "\"relative_rmse\": -0.1", "relative_rmse -0.1"),
        ("\"bits_per_weight\": 4", "\"bits_per_weight\": -4", "bits_per_weight -4"),
        ("\"snr_db\": 1", "\"snr_db\": 9e99, \"rest\": 1", "snr_db 9"),
        ("\"largest\": 0", "\"largest\": 4e38, \"rest\": 0", "largest 4"),
        ("\"rescued\": 0", "\"rescued\": 999999999", "rescued 999999999 of "),
        ("\"all_zero\": 0", "\"all_zero\": 999999999", "all_zero 999999999 of "),
        ("\"counts\": [", "\"counts\": [4611686018427387904,", "a code 4611686018427387904 times"),
        ("\"bytes\": ", "\"byte\": ", "missing field"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&report, text.replacen(from, to, 1)).unwrap();
        let line = fail(1, &["report", &report, "-o", &page]);
        assert!(line.contains(says), "{line}");
    }
}

/// The browser, or why there is none. In CI there must be one.
fn chromium() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs a browser: apt-get install chromium");
        eprintln!("SKIPPED: the page was not looked at: no chromium here (apt-get install chromium)");
    }
    found
}

/// Opens a page and gives its document after scripts ran.
fn document(browser: &str, folder: &TempDir, page: &str, arguments: &[&str]) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1300,2000"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(arguments)
        .arg(format!("file://{page}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_browser_shows_and_sorts_it() {
    let Some(browser) = chromium() else { return };
    let (folder, page) = page();
    let plain = fs::read_to_string(&page).unwrap();
    // Clicks on headings as a reader would, and writes down what is then seen.
    let probe = include_str!("probe.html");
    let probed = path(&folder, "probed.html");
    fs::write(&probed, plain.replace("</body>", probe)).unwrap();
    let shown = document(browser, &folder, &probed, &["--dump-dom"]);
    let result =
        shown.split("<pre id=\"result\">").nth(1).and_then(|rest| rest.split("</pre>").next()).unwrap();
    let lines: Vec<Vec<_>> = result.lines().map(|line| line.split(' ').collect()).collect();
    let by_name = &lines[0];
    assert_eq!(by_name.len(), 9);
    assert_eq!((by_name[0], by_name[8]), ("embeddings.position_embeddings.weight", "pooler.dense.weight"));
    let by_bytes = &lines[1];
    assert_eq!(by_bytes[..2], ["intermediate.dense.bias", "output.LayerNorm.weight"]);
    assert_eq!(by_bytes[8], "self.query.weight");
    let falling: Vec<_> = lines[2].iter().rev().collect();
    assert!(falling.iter().zip(by_bytes).all(|(a, b)| *a == b), "a second click turns the order round");
    assert_eq!(lines[3][0], "pooler.dense.weight", "the W8 matrix has the least error");
    assert_eq!(
        lines[3][5], "embeddings.position_embeddings.weight",
        "the largest error, before those without"
    );
    assert_eq!(lines[4], ["3", "plots"]);
    assert_eq!(lines[5], ["6", "bars"]);

    // And there is something to see: a picture of the page is not blank.
    let picture = path(&folder, "page.png");
    document(browser, &folder, &page, &[&format!("--screenshot={picture}")]);
    let bytes = fs::read(picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 40_000, "{} bytes", bytes.len());
}
