//! A page for a browser: one file, no scripts.

use std::fmt::Write;

use super::Explanation;
use super::units;

pub(super) const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}\
    table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:baseline}\
    td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}code{font-size:.92em}\
    tr.gone{color:#888}svg{max-width:100%;height:auto}.wide{overflow:auto;max-height:30rem}.maps{display:flex;flex-wrap:wrap;gap:0 1rem;align-items:flex-start}h2{font-size:1.1rem;margin-top:2rem}.inside{margin-left:2rem}";

impl Explanation {
    pub(crate) fn html(&self) -> String {
        let name = self.source.as_ref().map_or("plan", |source| source.file());
        let mut out = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style>\
             <h1>{0}</h1><p>{1}</p>\n",
            escape(name),
            escape(&self.line())
        );
        let remarks =
            self.input_lines().into_iter().chain(self.avoidable().into_iter().map(|text| format!("avoidable: {text}")));
        let remarks: String = remarks.map(|text| format!("<li>{}</li>", escape(&text))).collect();
        if !remarks.is_empty() {
            let _ = writeln!(out, "<ul>{remarks}</ul>");
        }
        for (number, section) in (1..).zip(&self.sections) {
            let class = if section.at.depth > 0 { " class=\"inside\"" } else { "" };
            let _ = writeln!(out, "<section{class}><h2>{}</h2>", escape(&self.title(&section.at, number)));
            if let Some(why) = self.why_later(section) {
                let _ = writeln!(out, "<p>{}</p>", escape(&why));
            }
            if let Some(plan) = section.plan() {
                self.html_table(plan, &mut out);
                out.push_str("<ul>");
                for sentence in self.why(plan) {
                    let _ = writeln!(out, "<li>{}</li>", escape(&sentence));
                }
                out.push_str("</ul>");
            }
            out.push_str("</section>\n");
        }
        if let Some(on) = &self.on {
            out.push_str(&self.machine_html(on));
        }
        out.push_str("</html>\n");
        out
    }

    fn html_table(&self, plan: &super::SegmentPlan, out: &mut String) {
        let rows = self.rows(plan);
        // Program text has statements, not calls.
        let operation = if rows.iter().any(|row| row.place.operation().is_some()) { "operation" } else { "" };
        let _ = writeln!(
            out,
            "<div class=wide><table><tr><th class=n>line<th>statement<th>{operation}<th><th class=n>tasks<th class=n>blocks<th class=n>made<th class=n>work<th>fused</tr>"
        );
        for row in rows {
            let class = if row.cost.tasks == 0 { " class=gone" } else { "" };
            let _ = writeln!(
                out,
                "<tr{class}><td class=n>{}<td><code>{}</code><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}</tr>",
                escape(&row.place.short()),
                escape(&row.text),
                escape(row.place.operation().unwrap_or_default()),
                row.kind,
                units::count(row.cost.tasks),
                units::count(row.cost.blocks),
                units::bytes(row.cost.made_bytes),
                units::flops(row.cost.flops),
                escape(&row.fusion()),
            );
        }
        out.push_str("</table></div>\n");
    }
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
