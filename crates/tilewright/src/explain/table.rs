//! Text tables with aligned columns.

use super::html::escape;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells under a header.
pub(crate) struct Table {
    header: Vec<String>,
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Table {
        let (header, align) = columns.iter().map(|(name, align)| (name.to_string(), *align)).unzip();
        Table { header, align, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Each line indented by `indent`, without trailing spaces.
    pub(crate) fn to_text(&self, indent: usize) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let mut text = String::new();
        for row in lines() {
            let mut line = " ".repeat(indent);
            for (k, cell) in row.iter().enumerate() {
                if k > 0 {
                    line.push_str("  ");
                }
                let padding = " ".repeat(widths[k].saturating_sub(cell.chars().count()));
                match self.align[k] {
                    Align::Left => line.extend([cell, padding.as_str()]),
                    Align::Right => line.extend([padding.as_str(), cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The same on a page.
    pub(crate) fn to_html(&self) -> String {
        let mut text = String::from("<table>");
        for (k, row) in std::iter::once(&self.header).chain(&self.rows).enumerate() {
            let tag = if k == 0 { "th" } else { "td" };
            text.push_str("<tr>");
            for (cell, align) in row.iter().zip(&self.align) {
                let class = if *align == Align::Right { " class=n" } else { "" };
                text.push_str(&format!("<{tag}{class}>{}</{tag}>", escape(cell)));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</table>\n");
        text
    }

    /// The same as a table of markdown.
    #[cfg(feature = "cli")]
    pub(crate) fn to_markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let rule = |align: &Align| if *align == Align::Left { "---" } else { "---:" };
        let mut text = line(self.header.iter().map(String::as_str).collect());
        text.push_str(&line(self.align.iter().map(rule).collect()));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(String::as_str).collect()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["a".into(), "1,000".into()]);
        table.row(vec!["élan vital".into(), "7".into()]);
        assert_eq!(table.to_text(2), "  name            n\n  a           1,000\n  élan vital      7\n");
    }

    #[test]
    fn pages_keep_the_alignment_and_escape() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["<a>".into(), "7".into()]);
        let page = "<table><tr><th>name</th><th class=n>n</th></tr>\n<tr><td>&lt;a&gt;</td><td class=n>7</td></tr>\n</table>\n";
        assert_eq!(table.to_html(), page);
    }

    #[cfg(feature = "cli")]
    #[test]
    fn markdown_keeps_the_alignment() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(vec!["a".into(), "7".into()]);
        assert_eq!(table.to_markdown(), "| name | n |\n| --- | ---: |\n| a | 7 |\n");
    }
}
