//! The text of the header: a Python dictionary of strings, booleans and tuples of integers.

/// Whitespace for Python's parser.
const BLANK: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// A value of the dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Bool(bool),
    Sizes(Vec<usize>),
    /// A list, whose contents are skipped.
    Other,
}

impl Literal {
    /// Parses a whole header; None if it is not such a dictionary.
    pub(super) fn parse_dict(text: &[u8]) -> Option<Vec<(String, Literal)>> {
        let mut rest = Rest(std::str::from_utf8(text).ok()?);
        rest.expect('{')?;
        let mut entries = Vec::new();
        while rest.expect('}').is_none() {
            let key = rest.text()?;
            rest.expect(':')?;
            entries.push((key, rest.value()?));
            if rest.expect(',').is_none() {
                rest.expect('}')?;
                break;
            }
        }
        rest.0
            .trim_start_matches(BLANK)
            .is_empty()
            .then_some(entries)
    }
}

/// The text that is not parsed yet.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Reads one character, after whitespace.
    fn expect(&mut self, wanted: char) -> Option<()> {
        self.0 = self.0.trim_start_matches(BLANK).strip_prefix(wanted)?;
        Some(())
    }

    fn word(&mut self, wanted: &str) -> Option<()> {
        self.0 = self.0.trim_start_matches(BLANK).strip_prefix(wanted)?;
        Some(())
    }

    fn text(&mut self) -> Option<String> {
        self.0 = self.0.trim_start_matches(BLANK);
        let quote = self.0.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (text, rest) = self.0[1..].split_once(quote)?;
        self.0 = rest;
        (!text.contains('\\')).then(|| text.to_owned())
    }

    fn value(&mut self) -> Option<Literal> {
        if self.word("True").is_some() {
            return Some(Literal::Bool(true));
        }
        if self.word("False").is_some() {
            return Some(Literal::Bool(false));
        }
        if self.expect('(').is_some() {
            return self.sizes().map(Literal::Sizes);
        }
        if self.expect('[').is_some() {
            return self.list().map(|()| Literal::Other);
        }
        self.text().map(Literal::Text)
    }

    fn sizes(&mut self) -> Option<Vec<usize>> {
        let mut sizes = Vec::new();
        while self.expect(')').is_none() {
            self.0 = self.0.trim_start_matches(BLANK);
            let digits = self.0.len()
                - self
                    .0
                    .trim_start_matches(|c: char| c.is_ascii_digit())
                    .len();
            sizes.push(self.0[..digits].parse().ok()?);
            self.0 = self.0[digits..].trim_start_matches('L'); // written by Python 2
            if self.expect(',').is_none() {
                self.expect(')')?;
                // one number in parentheses is not a tuple
                return (sizes.len() > 1).then_some(sizes);
            }
        }
        Some(sizes)
    }

    /// Skips a list of anything.
    fn list(&mut self) -> Option<()> {
        let mut depth = 1;
        let end = self.0.find(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        self.0 = &self.0[end + 1..];
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_numpy_writes_is_read() {
        let header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n";
        let entries = Literal::parse_dict(header).unwrap();
        assert_eq!(entries[0], ("descr".into(), Literal::Text("<f4".into())));
        assert_eq!(entries[1], ("fortran_order".into(), Literal::Bool(false)));
        assert_eq!(entries[2], ("shape".into(), Literal::Sizes(vec![3, 4])));
    }

    #[test]
    fn tuples_are_those_of_python() {
        let shape = |text: &str| {
            let header = format!("{{'shape': {text}}}");
            Literal::parse_dict(header.as_bytes()).map(|entries| entries[0].1.clone())
        };
        assert_eq!(shape("()"), Some(Literal::Sizes(vec![])));
        assert_eq!(shape("(5,)"), Some(Literal::Sizes(vec![5])));
        assert_eq!(shape("(5L, 6L)"), Some(Literal::Sizes(vec![5, 6])));
        for damaged in [
            "(5)",
            "(",
            "(5, -1)",
            "(5 6)",
            "(99999999999999999999,)",
            "5",
        ] {
            assert_eq!(shape(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn what_follows_the_dictionary_is_refused() {
        assert!(Literal::parse_dict(b"{} x").is_none());
        assert!(Literal::parse_dict(b"{'a': True").is_none());
    }
}
