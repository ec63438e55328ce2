//! The words of a template, by the rules of Go's `text/template/parse`.

use super::node::Span;

/// What a word is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    Comma,
    /// A character that stands for nothing.
    Other,
    /// In quotes.
    Quoted,
    /// In back quotes.
    Raw,
    Char,
    Number,
    Variable,
    Field,
    Dot,
    Nil,
    Bool(bool),
    Identifier,
    Keyword(Keyword),
    LeftParen,
    RightParen,
    /// What is wrong. Nothing follows.
    Error(String),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

/// A word and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const LEFT_COMMENT: &str = "/*";
const RIGHT_COMMENT: &str = "*/";
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// All words. The last one is an end or an error.
pub(crate) fn words(text: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        at: 0,
        found: Vec::new(),
    };
    if let Err(why) = lexer.template() {
        let at = lexer.at.min(text.len());
        lexer.found.push(Token {
            kind: Kind::Error(why),
            span: at..at,
        });
    }
    lexer.found
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    found: Vec<Token>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.found.push(Token {
            kind,
            span: start..self.at,
        });
    }

    /// Text and actions in turn.
    fn template(&mut self) -> Result<(), String> {
        let mut trims = false;
        loop {
            if trims {
                let rest = self.rest();
                self.skip(rest.len() - rest.trim_start_matches(SPACES).len());
            }
            let start = self.at;
            let Some(found) = self.rest().find(LEFT) else {
                self.at = self.text.len();
                if start < self.at {
                    self.push(Kind::Text, start);
                }
                let end = self.at;
                self.push(Kind::End, end);
                return Ok(());
            };
            let delim = start + found;
            let marked = trims_left(&self.text[delim + LEFT.len()..]);
            let mut text = &self.text[start..delim];
            if marked {
                text = text.trim_end_matches(SPACES);
            }
            self.at = start + text.len();
            if !text.is_empty() {
                self.push(Kind::Text, start);
            }
            self.at = delim + LEFT.len();
            trims = self.action(delim, marked)?;
        }
    }

    /// From after the left delimiter to after the right one. Whether that trims what follows.
    fn action(&mut self, delim: usize, marked: bool) -> Result<bool, String> {
        let skipped = if marked { 2 } else { 0 };
        if self.rest()[skipped..].starts_with(LEFT_COMMENT) {
            self.skip(skipped);
            return self.comment();
        }
        self.push(Kind::LeftDelim, delim);
        self.skip(skipped);
        let mut depth = 0_usize;
        loop {
            if let Some(trims) = self.right_delim() {
                if depth > 0 {
                    return Err("unclosed left paren".to_owned());
                }
                let start = self.at;
                self.skip(RIGHT.len() + if trims { 2 } else { 0 });
                self.push(Kind::RightDelim, start);
                return Ok(trims);
            }
            self.word(&mut depth)?;
        }
    }

    fn comment(&mut self) -> Result<bool, String> {
        let Some(end) = self.rest()[LEFT_COMMENT.len()..].find(RIGHT_COMMENT) else {
            return Err("unclosed comment".to_owned());
        };
        self.skip(LEFT_COMMENT.len() + end + RIGHT_COMMENT.len());
        let Some(trims) = self.right_delim() else {
            return Err("comment ends before closing delimiter".to_owned());
        };
        self.skip(RIGHT.len() + if trims { 2 } else { 0 });
        Ok(trims)
    }

    /// Whether a right delimiter comes next, and if so whether it trims.
    fn right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        let mut chars = rest.chars();
        if chars.next().is_some_and(is_space) && chars.next() == Some('-') && rest[2..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    /// A word inside of an action.
    fn word(&mut self, depth: &mut usize) -> Result<(), String> {
        let start = self.at;
        let Some(next) = self.peek() else {
            return Err("unclosed action".to_owned());
        };
        if is_space(next) {
            while self.peek().is_some_and(is_space) && self.right_delim().is_none() {
                self.skip(1);
            }
            self.push(Kind::Space, start);
            return Ok(());
        }
        let after = self.rest()[next.len_utf8()..].chars().next();
        match next {
            '=' => self.single(Kind::Assign),
            '|' => self.single(Kind::Pipe),
            ',' => self.single(Kind::Comma),
            ':' => {
                if after != Some('=') {
                    return Err("expected :=".to_owned());
                }
                self.skip(2);
                self.push(Kind::Declare, start);
            }
            '"' => self.quoted('"', Kind::Quoted)?,
            '`' => self.raw()?,
            '\'' => self.quoted('\'', Kind::Char)?,
            '$' => self.name(Kind::Variable)?,
            '.' if !after.is_some_and(|digit| digit.is_ascii_digit()) => self.name(Kind::Field)?,
            '+' | '-' | '.' | '0'..='9' => self.number()?,
            '(' => {
                *depth += 1;
                self.single(Kind::LeftParen);
            }
            ')' => {
                *depth = depth.checked_sub(1).ok_or("unexpected right paren")?;
                self.single(Kind::RightParen);
            }
            letter if is_alphanumeric(letter) => self.identifier()?,
            ' '..='~' => self.single(Kind::Other),
            other => return Err(format!("unrecognized character in action: {other:?}")),
        }
        Ok(())
    }

    fn single(&mut self, kind: Kind) {
        let start = self.at;
        self.skip(1);
        self.push(kind, start);
    }

    /// What stands between two of these marks, on one line.
    fn quoted(&mut self, mark: char, kind: Kind) -> Result<(), String> {
        let start = self.at;
        let what = if kind == Kind::Char {
            "character constant"
        } else {
            "quoted string"
        };
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, next)) = chars.next() {
            match next {
                _ if next == mark => {
                    self.at = start + at + 1;
                    self.push(kind, start);
                    return Ok(());
                }
                '\\' if chars.next().is_some_and(|(_, escaped)| escaped != '\n') => {}
                '\\' | '\n' => break,
                _ => {}
            }
        }
        Err(format!("unterminated {what}"))
    }

    fn raw(&mut self) -> Result<(), String> {
        let start = self.at;
        let Some(length) = self.rest()[1..].find('`') else {
            return Err("unterminated raw quoted string".to_owned());
        };
        self.skip(length + 2);
        self.push(Kind::Raw, start);
        Ok(())
    }

    /// A variable or field: its first character, then letters.
    fn name(&mut self, kind: Kind) -> Result<(), String> {
        let start = self.at;
        self.skip(1);
        if self.ends_word() {
            let kind = if kind == Kind::Field { Kind::Dot } else { kind };
            self.push(kind, start);
            return Ok(());
        }
        self.letters();
        if !self.ends_word() {
            return Err(self.bad_character());
        }
        self.push(kind, start);
        Ok(())
    }

    fn letters(&mut self) {
        while let Some(letter) = self.peek().filter(|letter| is_alphanumeric(*letter)) {
            self.skip(letter.len_utf8());
        }
    }

    fn identifier(&mut self) -> Result<(), String> {
        let start = self.at;
        self.letters();
        if !self.ends_word() {
            return Err(self.bad_character());
        }
        let kind = match &self.text[start..self.at] {
            "block" => Kind::Keyword(Keyword::Block),
            "break" => Kind::Keyword(Keyword::Break),
            "continue" => Kind::Keyword(Keyword::Continue),
            "define" => Kind::Keyword(Keyword::Define),
            "else" => Kind::Keyword(Keyword::Else),
            "end" => Kind::Keyword(Keyword::End),
            "if" => Kind::Keyword(Keyword::If),
            "range" => Kind::Keyword(Keyword::Range),
            "template" => Kind::Keyword(Keyword::Template),
            "with" => Kind::Keyword(Keyword::With),
            "nil" => Kind::Nil,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            _ => Kind::Identifier,
        };
        self.push(kind, start);
        Ok(())
    }

    fn bad_character(&self) -> String {
        match self.peek() {
            Some(next) => format!("bad character {next:?}"),
            None => "unclosed action".to_owned(),
        }
    }

    /// Whether a name may end here.
    fn ends_word(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(next) => is_space(next) || self.rest().starts_with(RIGHT),
        }
    }

    fn number(&mut self) -> Result<(), String> {
        let start = self.at;
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        while self.accept(digits) {}
        if self.accept(".") {
            while self.accept(digits) {}
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            while self.accept("0123456789_") {}
        }
        if let Some(next) = self.peek().filter(|next| is_alphanumeric(*next)) {
            let text = &self.text[start..self.at + next.len_utf8()];
            return Err(format!("bad number syntax: {text:?}"));
        }
        if self.peek().is_some_and(|next| matches!(next, '+' | '-')) {
            return Err(format!("bad number syntax: {:?}", &self.text[start..=self.at]));
        }
        self.push(Kind::Number, start);
        Ok(())
    }

    fn accept(&mut self, allowed: &str) -> bool {
        let is_allowed = self.peek().is_some_and(|next| allowed.contains(next));
        if is_allowed {
            self.skip(1);
        }
        is_allowed
    }
}

/// Whether the text after a left delimiter has the mark that trims what is before it.
fn trims_left(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

fn is_space(next: char) -> bool {
    SPACES.contains(&next)
}

fn is_alphanumeric(next: char) -> bool {
    next == '_' || next.is_alphanumeric()
}
