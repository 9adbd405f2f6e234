//! Placements on an HTML page.

use std::fmt::Write;

use super::super::html::escape;
use super::super::svg::Drawing;
use super::text::{scheduler_table, search_words};
use super::{Explanation, OnMachine, Piece};

impl Explanation {
    /// Tables, reasons and pictures, as a part of a page.
    pub(crate) fn machine_html(&self, on: &OnMachine) -> String {
        let mut out = format!("<section><h2>on {}</h2><p>{}</p>\n", escape(&on.machine_words()), escape(&on.line()));
        for Piece { title, rivals, .. } in &on.pieces {
            if on.pieces.len() > 1 {
                let _ = writeln!(out, "<h2>{}</h2>", escape(title));
            }
            let _ = writeln!(out, "<div class=wide>{}</div>", scheduler_table(rivals).to_html());
            out.push_str("<ul>");
            for sentence in self.why_lost(rivals, &on.machine).into_iter().chain([search_words(rivals)]) {
                let _ = writeln!(out, "<li>{}</li>", escape(&sentence));
            }
            out.push_str("</ul>\n");
            for table in [self.statement_table(rivals), self.term_table(rivals)].into_iter().flatten() {
                let _ = writeln!(out, "<div class=wide>{}</div>", table.to_html());
            }
        }
        // When and who first: they have one drawing each, whereas values have many.
        let (maps, others): (Vec<Drawing>, Vec<Drawing>) =
            self.pictures(on).into_iter().partition(|drawing| drawing.is_map);
        for (class, drawings) in [("", others), (" class=maps", maps)] {
            let _ = writeln!(out, "<div{class}>{}</div>", drawings.iter().map(Drawing::to_svg).collect::<String>());
        }
        out.push_str("</section>\n");
        out
    }
}
