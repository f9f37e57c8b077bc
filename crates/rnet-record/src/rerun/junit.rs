//! The result as JUnit XML: a case for each output topic, or one for why there is nothing to compare.

use std::fmt::Write;
use std::path::Path;

use rnet_format::xml::escaped;

use super::text::{difference_text, result_line};
use super::{RerunError, RerunReport};

/// The document of a recording that begins at `start_ns`.
pub fn junit(file: &Path, start_ns: u64, done: &Result<RerunReport, RerunError>) -> String {
    let name = escaped(&format!("rnet rerun {}", file.display()));
    let (mut cases, mut failures, mut errors) = (String::new(), 0, 0);
    // Writing into a text does not fail.
    match done {
        Ok(done) => {
            let node = escaped(&done.node);
            for topic in &done.outputs {
                let case = escaped(&topic.topic);
                let _ = write!(cases, "    <testcase classname=\"{node}\" name=\"{case}\"");
                if topic.is_same() {
                    cases += "/>\n";
                    continue;
                }
                failures += 1;
                let worst = topic.worst.as_ref().map(|one| difference_text(one, start_ns));
                let worst = worst.unwrap_or_default();
                let (message, worst) = (escaped(&result_line(topic)), escaped(&worst));
                let _ = writeln!(
                    cases,
                    ">\n      <failure type=\"differs\" message=\"{message}\">{worst}</failure>\n    </testcase>"
                );
            }
        }
        Err(error) => {
            errors = 1;
            let (code, message) = (error.code(), escaped(&error.to_string()));
            let _ = writeln!(
                cases,
                "    <testcase classname=\"rnet\" name=\"rerun\">\n      <error type=\"{code}\" message=\"{message}\"/>\n    </testcase>"
            );
        }
    }
    let (tests, time) = match done {
        Ok(done) => (done.outputs.len(), done.took.as_secs_f64()),
        Err(_) => (1, 0.0),
    };
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time:.3}\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{name}\" {counts}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_case_of_its_own_and_text_stays_text() {
        let text = "/a\"<b>\u{1}, /c".to_owned();
        let error = RerunError::Failed { code: "several_nodes", text };
        let text = junit(Path::new("a&b.mcap"), 0, &Err(error));
        assert!(text.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{text}");
        assert!(text.contains("name=\"rnet rerun a&amp;b.mcap\""), "{text}");
        assert!(
            text.contains("type=\"several_nodes\" message=\"/a&quot;&lt;b&gt;\u{fffd}, /c"),
            "{text}"
        );
    }
}
