//! Splits command lines into options, their values, and other words.

/// The words of a command line, one after the other. `--option=value` counts as two.
pub struct Words<'a> {
    rest: std::vec::IntoIter<&'a str>,
    last: &'a str,
}

impl<'a> Words<'a> {
    pub fn new(args: &'a [String]) -> Self {
        let words: Vec<_> = args
            .iter()
            .flat_map(|arg| match arg.split_once('=') {
                Some((option, value)) if option.starts_with("--") => vec![option, value],
                _ => vec![arg.as_str()],
            })
            .collect();
        Self { rest: words.into_iter(), last: "" }
    }

    /// The next word.
    pub fn next(&mut self) -> Option<&'a str> {
        self.last = self.rest.next()?;
        Some(self.last)
    }

    /// The value of the option that was the last word.
    pub fn value(&mut self) -> Result<&'a str, String> {
        self.rest.next().ok_or_else(|| format!("{} needs a value", self.last))
    }

    /// What to say of the last word if nobody knows it.
    pub fn unknown(&self) -> String {
        format!("unknown argument {}", self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values_beside_or_behind_them() {
        let args = ["--a=1", "name=x", "--b", "2", "--c"].map(String::from);
        let mut words = Words::new(&args);
        assert_eq!((words.next(), words.value()), (Some("--a"), Ok("1")));
        assert_eq!(words.next(), Some("name=x"));
        assert_eq!((words.next(), words.value()), (Some("--b"), Ok("2")));
        assert_eq!(words.next(), Some("--c"));
        assert_eq!(words.value(), Err("--c needs a value".to_string()));
        assert_eq!(words.next(), None);
    }
}
