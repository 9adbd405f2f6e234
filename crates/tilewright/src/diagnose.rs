//! Errors as text for people: the line, a caret, notes and help.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use tw_ir::error::{Blame, Error};
use tw_ir::span::{FileId, Span};

/// Draws an error without colours.
///
/// Spans of the text `file`, and those of a text without a name, point into `source`, which is shown under the name `file`. Of other texts the name is shown.
pub fn render(error: &Error, source: &str, file: &str) -> String {
    draw(error, source, file, &Renderer::plain())
}

/// Draws an error for a terminal.
pub fn render_in_colour(error: &Error, source: &str, file: &str) -> String {
    draw(error, source, file, &Renderer::styled())
}

/// The code a process ends with: 2 if the program, its data or the machine is at fault, 130 if it was stopped, 70 if Tilewright itself is.
pub fn exit_code(error: &Error) -> u8 {
    match error.blame() {
        Blame::Source | Blame::Plan | Blame::Data | Blame::Resource | Blame::Io => 2,
        Blame::Cancelled => 130,
        Blame::Internal => 70,
    }
}

fn draw(error: &Error, source: &str, file: &str, renderer: &Renderer) -> String {
    let title = match error.blame() {
        Blame::Internal => Level::ERROR.with_name("internal error").primary_title(error.message()),
        _ => Level::ERROR.primary_title(error.message()),
    };
    let mut group = match error.span() {
        Span::None => Group::with_title(title),
        Span::Host { file, line, .. } => title.element(Origin::path(file.name()).line(*line as usize)),
        Span::Text { file: other, .. } if *other != FileId::UNNAMED && other.name() != file => {
            title.element(Origin::path(other.name()))
        }
        Span::Text { start, end, .. } => {
            let range = char_range(source, *start as usize, *end as usize);
            title.element(Snippet::source(source).path(file).annotation(AnnotationKind::Primary.span(range)))
        }
    };
    for note in error.notes() {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(help) = error.help_text() {
        group = group.element(Level::HELP.message(help));
    }
    if error.blame() == Blame::Internal {
        group =
            group.element(Level::HELP.message("this is a fault of Tilewright, not of the program; please report it"));
    }
    renderer.render(&[group])
}

/// The range clipped to the text and widened to whole characters. A range over several lines is clipped to its first line: a caret
/// is clearer than a frame around half the program.
fn char_range(source: &str, start: usize, end: usize) -> std::ops::Range<usize> {
    let mut start = start.min(source.len());
    while !source.is_char_boundary(start) {
        start -= 1;
    }
    let line_end = source[start..].find('\n').map_or(source.len(), |n| start + n);
    let mut end = end.clamp(start, line_end);
    while !source.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_line_a_caret_and_what_to_do() {
        let source = "param n = 4\ny = x + 1\noutput y\n";
        let error = Error::source("`x` is not defined").note("names are case-sensitive").help("define `x`");
        let text = render(&error.at(&Span::text(16, 17)), source, "p.tw");
        let expected = "error: `x` is not defined\n \
             --> p.tw:2:5\n  \
              |\n\
            2 | y = x + 1\n  \
              |     ^\n  \
              |\n  \
              = note: names are case-sensitive\n  \
              = help: define `x`";
        assert_eq!(text, expected);
    }

    #[test]
    fn errors_without_a_place_have_no_snippet() {
        let text = render(&Error::io("no such file").help("check the path"), "", "p.tw");
        assert_eq!(text, "error: no such file\n |\n = help: check the path");
    }

    #[test]
    fn host_lines_are_named() {
        let span = Span::host("main.rs", 7);
        assert!(render(&Error::source("wrong").at(&span), "", "").contains("main.rs:7"));
    }

    #[test]
    fn places_in_other_files_are_not_drawn_into_this_one() {
        let span = FileId::named("lib.tw").span(0, 1);
        let text = render(&Error::source("wrong").at(&span), "y = 1", "p.tw");
        assert_eq!(text, "error: wrong\n--> lib.tw");
        let text = render(&Error::source("wrong").at(&span), "y = 1", "lib.tw");
        assert!(text.contains("--> lib.tw:1:1") && text.contains("y = 1"), "{text}");
    }

    #[test]
    fn any_span_can_be_drawn() {
        let source = "x = \"é\"\n";
        for start in 0..source.len() + 3 {
            for end in 0..source.len() + 3 {
                render(&Error::source("wrong").at(&Span::text(start, end)), source, "p.tw");
                render(&Error::source("wrong").at(&Span::text(start, end)), "", "p.tw");
            }
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let source = format!("y = {}\n", "(".repeat(100_000));
        let text = render(&Error::source("nested too deep").at(&Span::text(200, 201)), &source, "p.tw");
        assert!(text.len() < 2000, "{} bytes", text.len());
        assert!(text.contains('^'));
    }

    #[test]
    fn internal_errors_ask_for_a_report() {
        let text = render(&Error::internal("odd"), "", "p.tw");
        assert!(text.starts_with("internal error: odd") && text.contains("please report"), "{text}");
        assert_eq!(exit_code(&Error::internal("odd")), 70);
    }
}
