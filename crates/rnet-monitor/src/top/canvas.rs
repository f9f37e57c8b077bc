//! A screen of characters, and the lines of styled text that are drawn on it.

use anstyle::Style;

/// A line of text in parts, each with its style.
#[derive(Clone, Debug, Default)]
pub(super) struct StyledLine(pub Vec<(String, Style)>);

impl StyledLine {
    pub fn styled(text: impl Into<String>, style: Style) -> StyledLine {
        StyledLine(vec![(text.into(), style)])
    }

    pub fn raw(text: impl Into<String>) -> StyledLine {
        StyledLine::styled(text, Style::new())
    }

    fn cells(&self) -> impl Iterator<Item = (char, Style)> {
        self.0.iter().flat_map(|(text, style)| text.chars().map(|c| (c, *style)))
    }

    /// The line in rows of at most `width` characters, broken at a blank where there is one.
    fn wrapped(&self, width: usize) -> Vec<Vec<(char, Style)>> {
        let cells: Vec<(char, Style)> = self.cells().collect();
        let (mut rows, mut rest) = (Vec::new(), &cells[..]);
        while rest.len() > width.max(1) {
            let blank =
                rest[..=width.max(1)].iter().rposition(|(c, _)| *c == ' ').filter(|at| *at > 0);
            let (row, next) = match blank {
                Some(at) => (&rest[..at], &rest[at + 1..]),
                None => rest.split_at(width.max(1)),
            };
            rows.push(row.to_vec());
            rest = next;
        }
        rows.push(rest.to_vec());
        rows
    }
}

/// Rows of the canvas from `top` to before `bottom`, over its whole width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub top: usize,
    pub bottom: usize,
}

impl Area {
    pub fn height(self) -> usize {
        self.bottom.saturating_sub(self.top)
    }
}

/// What is drawn. Each character takes one column; what does not fit is cut.
pub struct Canvas {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    cells: Vec<(char, Style)>,
}

impl Canvas {
    /// An empty screen.
    pub fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, cells: vec![(' ', Style::new()); width * height] }
    }

    /// The characters of a row.
    pub fn row(&self, row: usize) -> &[(char, Style)] {
        &self.cells[row * self.width..][..self.width]
    }

    fn put(&mut self, row: usize, column: usize, cells: impl Iterator<Item = (char, Style)>) {
        if row < self.height && column < self.width {
            let of_row = &mut self.cells[row * self.width..][column..self.width];
            of_row.iter_mut().zip(cells).for_each(|(cell, new)| *cell = new);
        }
    }

    /// Draws one line, cut at the right.
    pub(super) fn draw(&mut self, row: usize, line: &StyledLine) {
        self.put(row, 0, line.cells());
    }

    /// Draws lines, wrapped, from the top of an area; those below it are cut.
    pub(super) fn draw_wrapped(&mut self, area: Area, lines: &[StyledLine]) {
        let rows = lines.iter().flat_map(|line| line.wrapped(self.width)).collect::<Vec<_>>();
        for (row, cells) in (area.top..area.bottom).zip(rows) {
            self.put(row, 0, cells.into_iter());
        }
    }

    /// Draws a row of cells in columns of these widths, one blank between; `style` is that of the whole row.
    pub(super) fn draw_cells(
        &mut self,
        row: usize,
        cells: &[(String, Style)],
        widths: &[usize],
        style: Option<Style>,
    ) {
        let mut column = 0;
        for ((text, own), width) in cells.iter().zip(widths) {
            let chars = text.chars().take(*width).map(|c| (c, style.unwrap_or(*own)));
            self.put(row, column, chars);
            column += width + 1;
        }
        if let Some(style) = style.filter(|_| row < self.height) {
            self.cells[row * self.width..][..self.width].iter_mut().for_each(|cell| cell.1 = style);
        }
    }

    /// Draws numbers as bars, side by side from the left; the largest is as high as the area.
    pub(super) fn draw_bars(&mut self, area: Area, numbers: &[u64]) {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = numbers.iter().copied().max().unwrap_or(0).max(1) as f64;
        let eighths = |number: u64| (number as f64 / most * (8 * area.height()) as f64) as usize;
        for row in area.top..area.bottom {
            let below = 8 * (area.bottom - 1 - row);
            let bar = |number: &u64| EIGHTHS[eighths(*number).saturating_sub(below).min(8)];
            self.put(row, 0, numbers.iter().map(|number| (bar(number), Style::new())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(canvas: &Canvas) -> Vec<String> {
        let row = |row| canvas.row(row).iter().map(|(c, _)| c).collect::<String>();
        (0..canvas.height).map(|at| row(at).trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_are_cut_or_wrapped_and_never_leave_the_canvas() {
        let mut canvas = Canvas::new(8, 4);
        canvas.draw(0, &StyledLine::raw("0123456789"));
        canvas.draw_wrapped(
            Area { top: 1, bottom: 9 },
            &[StyledLine::raw("one two three"), StyledLine::raw("abcdefghijk")],
        );
        assert_eq!(text(&canvas), ["01234567", "one two", "three", "abcdefgh"]);
        canvas.draw(7, &StyledLine::raw("below"));
        let mut none = Canvas::new(0, 0);
        none.draw_wrapped(Area { top: 0, bottom: 3 }, &[StyledLine::raw("ab")]);
        none.draw_bars(Area { top: 0, bottom: 3 }, &[1]);
        none.draw_cells(0, &[("a".to_owned(), Style::new())], &[3], Some(Style::new()));
    }

    #[test]
    fn bars_are_as_high_as_their_numbers() {
        let mut canvas = Canvas::new(4, 2);
        canvas.draw_bars(Area { top: 0, bottom: 2 }, &[0, 4, 8, 16]);
        assert_eq!(text(&canvas), ["   █", " ▄██"]);
    }
}
