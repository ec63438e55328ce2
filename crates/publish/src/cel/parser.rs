//! Parses CEL: expressions of the core language, with its macros resolved.

use std::sync::Arc;

use super::functions::{self, Function};
use super::lexer::{Token, Word, words};
use super::value::{Text, Val};
use super::{CelError, VARIABLES};

/// How deep expressions may be nested.
const DEEPEST: usize = 100;

/// Words that cannot be names of variables.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// An expression.
#[derive(Debug)]
pub(super) enum Expr {
    Literal(Val<'static>),
    Variable(String),
    Select(Box<Expr>, String),
    /// Whether a field is there.
    Has(Box<Expr>, String),
    Call(&'static Function, Vec<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Choice(Box<[Expr; 3]>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Loop(Box<Loop>),
}

/// A macro that goes through a list, or the keys of a map.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) kind: LoopKind,
    pub(super) range: Expr,
    pub(super) variable: String,
    pub(super) filter: Option<Expr>,
    pub(super) body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Map,
}

/// Parses an expression. Names and functions that are not there are errors already.
pub(super) fn parse(text: &str) -> Result<Expr, CelError> {
    let words = words(text)?;
    let mut parser = Parser {
        text,
        words,
        next: 0,
        scope: VARIABLES.iter().map(|name| (*name).to_owned()).collect(),
        depth: 0,
    };
    let expr = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => parser.error("mismatched input"),
    }
}

struct Parser<'t> {
    text: &'t str,
    words: Vec<Word>,
    next: usize,
    scope: Vec<String>,
    depth: usize,
}

type Parsed = Result<Expr, CelError>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.words.get(self.next).map_or(&Token::End, |word| &word.token)
    }

    fn error<T>(&self, why: &str) -> Result<T, CelError> {
        let at = self.words.get(self.next).map_or(self.text.len(), |word| word.at);
        Err(CelError::syntax(self.text, at, why))
    }

    /// Takes this sign, if it is next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    fn must_take(&mut self, sign: &str) -> Result<(), CelError> {
        if self.takes(sign) {
            Ok(())
        } else {
            self.error(&format!("missing '{sign}'"))
        }
    }

    fn expression(&mut self) -> Parsed {
        if self.depth == DEEPEST {
            return self.error(&format!("nested more than {DEEPEST} deep"));
        }
        self.depth += 1;
        let condition = self.or()?;
        let expr = if self.takes("?") {
            let then = self.or()?;
            self.must_take(":")?;
            let other = self.expression()?;
            Expr::Choice(Box::new([condition, then, other]))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn or(&mut self) -> Parsed {
        let mut all = vec![self.and()?];
        while self.takes("||") {
            all.push(self.and()?);
        }
        Ok(balanced(all, |left, right| Expr::Or(Box::new(left), Box::new(right))))
    }

    fn and(&mut self) -> Parsed {
        let mut all = vec![self.relation()?];
        while self.takes("&&") {
            all.push(self.relation()?);
        }
        Ok(balanced(all, |left, right| Expr::And(Box::new(left), Box::new(right))))
    }

    /// What takes two operands, of which the left one may be as deep as the expression is long.
    fn operators(&mut self, signs: &[&str], operand: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = operand(self)?;
        let before = self.depth;
        loop {
            let name = match self.peek() {
                Token::Sign(sign) if signs.contains(sign) => *sign,
                Token::Name(name) if name == "in" && signs.contains(&"in") => "in",
                _ => break,
            };
            if self.depth == DEEPEST {
                return self.error(&format!("nested more than {DEEPEST} deep"));
            }
            self.depth += 1;
            self.next += 1;
            let right = operand(self)?;
            left = self.call(name, vec![left, right])?;
        }
        self.depth = before;
        Ok(left)
    }

    fn relation(&mut self) -> Parsed {
        self.operators(&["<", "<=", ">", ">=", "==", "!=", "in"], Self::sum)
    }

    fn sum(&mut self) -> Parsed {
        self.operators(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.operators(&["*", "/", "%"], Self::unary)
    }

    fn unary(&mut self) -> Parsed {
        let Some(sign) = ["!", "-"].into_iter().find(|sign| self.takes(sign)) else {
            return self.member(false);
        };
        let mut count = 1usize;
        while self.takes(sign) {
            count += 1;
        }
        // The last sign before a number is a part of it: the smallest integer has no positive one.
        let negative = sign == "-" && matches!(self.peek(), Token::Int(_) | Token::Double(_));
        count -= usize::from(negative);
        let operand = self.member(negative)?;
        if count.is_multiple_of(2) {
            return Ok(operand);
        }
        self.call(if sign == "!" { "!" } else { "-_" }, vec![operand])
    }

    fn member(&mut self, negative: bool) -> Parsed {
        let mut expr = self.primary(negative)?;
        let before = self.depth;
        loop {
            if self.depth == DEEPEST {
                return self.error(&format!("nested more than {DEEPEST} deep"));
            }
            self.depth += 1;
            if self.takes("[") {
                let index = self.expression()?;
                self.must_take("]")?;
                expr = self.call("[]", vec![expr, index])?;
            } else if self.takes(".") {
                let Token::Name(name) = self.peek().clone() else {
                    return self.error("missing name");
                };
                self.next += 1;
                expr = if self.takes("(") {
                    self.method(expr, &name)?
                } else {
                    Expr::Select(Box::new(expr), name)
                };
            } else {
                break;
            }
        }
        self.depth = before;
        Ok(expr)
    }

    fn primary(&mut self, negative: bool) -> Parsed {
        let token = self.peek().clone();
        let value = match token {
            Token::Int(number) => {
                self.next += 1;
                let number = i128::from(number) * if negative { -1 } else { 1 };
                match i64::try_from(number) {
                    Ok(number) => Val::Int(number),
                    Err(_) => return self.error("invalid int literal"),
                }
            }
            Token::Double(number) => {
                self.next += 1;
                Val::Double(if negative { -number } else { number })
            }
            Token::Uint(number) => {
                self.next += 1;
                Val::Uint(number)
            }
            Token::Text(text) => {
                self.next += 1;
                Val::Text(Text::Made(text.into()))
            }
            Token::Bytes(bytes) => {
                self.next += 1;
                Val::Bytes(bytes.into())
            }
            Token::Name(name) => {
                self.next += 1;
                return self.name(&name);
            }
            Token::Sign(_) | Token::End => return self.group(),
        };
        Ok(Expr::Literal(value))
    }

    fn name(&mut self, name: &str) -> Parsed {
        let value = match name {
            "true" => Val::Bool(true),
            "false" => Val::Bool(false),
            "null" => Val::Null,
            name if name == "in" || RESERVED.contains(&name) => {
                return self.error(&format!("reserved identifier: {name}"));
            }
            name if self.takes("(") => return self.global(name),
            name if self.scope.iter().any(|known| known == name) => return Ok(Expr::Variable(name.to_owned())),
            name => match functions::type_named(name) {
                Some(known) => Val::Type(known),
                None => return self.error(&format!("undeclared reference to '{name}'")),
            },
        };
        Ok(Expr::Literal(value))
    }

    fn group(&mut self) -> Parsed {
        if self.takes("(") {
            let inner = self.expression()?;
            self.must_take(")")?;
            return Ok(inner);
        }
        if self.takes("[") {
            return self.separated("]", Self::expression).map(Expr::List);
        }
        if self.takes("{") {
            let entry = |parser: &mut Self| {
                let key = parser.expression()?;
                parser.must_take(":")?;
                Ok::<_, CelError>((key, parser.expression()?))
            };
            return self.separated("}", entry).map(Expr::Map);
        }
        // A leading dot names a variable of the outermost scope.
        if self.takes(".")
            && let Token::Name(name) = self.peek().clone()
        {
            self.next += 1;
            return self.name(&name);
        }
        self.error("mismatched input")
    }

    /// What is between commas; one may be at the end.
    fn separated<T>(&mut self, end: &str, one: impl Fn(&mut Self) -> Result<T, CelError>) -> Result<Vec<T>, CelError> {
        let mut all = Vec::new();
        while !self.takes(end) {
            all.push(one(self)?);
            if !self.takes(",") {
                self.must_take(end)?;
                break;
            }
        }
        Ok(all)
    }

    /// A call of a function by its name.
    fn global(&mut self, name: &str) -> Parsed {
        let mut arguments = self.separated(")", Self::expression)?;
        if name == "has" {
            return match (arguments.pop(), arguments.is_empty()) {
                (Some(Expr::Select(operand, field)), true) => Ok(Expr::Has(operand, field)),
                _ => self.error("invalid argument to has() macro"),
            };
        }
        self.call(name, arguments)
    }

    fn method(&mut self, target: Expr, name: &str) -> Parsed {
        let kind = match name {
            "all" => LoopKind::All,
            "exists" => LoopKind::Exists,
            "exists_one" | "existsOne" => LoopKind::ExistsOne,
            "map" | "filter" => LoopKind::Map,
            _ => {
                let mut arguments = vec![target];
                arguments.extend(self.separated(")", Self::expression)?);
                return self.call_method(name, arguments);
            }
        };
        let Token::Name(variable) = self.peek().clone() else {
            return self.error("argument must be a simple name");
        };
        self.next += 1;
        self.must_take(",")?;
        self.scope.push(variable.clone());
        let mut bodies = self.separated(")", Self::expression)?;
        self.scope.pop();
        let (filter, body) = match (name, bodies.pop(), bodies.pop(), bodies.is_empty()) {
            ("filter", Some(filter), None, true) => (Some(filter), Expr::Variable(variable.clone())),
            ("map", Some(body), filter, true) => (filter, body),
            (name, Some(body), None, true) if name != "filter" => (None, body),
            _ => return self.error(&format!("wrong arguments of {name}()")),
        };
        let range = target;
        Ok(Expr::Loop(Box::new(Loop {
            kind,
            range,
            variable,
            filter,
            body,
        })))
    }

    fn call(&self, name: &str, arguments: Vec<Expr>) -> Parsed {
        match functions::named(name, arguments.len(), false) {
            Some(function) => Ok(Expr::Call(function, arguments)),
            None => self.error(&format!(
                "undeclared reference to '{name}', or wrong number of arguments"
            )),
        }
    }

    fn call_method(&self, name: &str, arguments: Vec<Expr>) -> Parsed {
        match functions::named(name, arguments.len(), true) {
            Some(function) => Ok(Expr::Call(function, arguments)),
            None => self.error(&format!(
                "undeclared reference to '{name}', or wrong number of arguments"
            )),
        }
    }
}

/// Joins operands so that no side is deeper than it must be.
fn balanced(mut all: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Expr {
    while all.len() > 1 {
        let mut joined = Vec::with_capacity(all.len().div_ceil(2));
        let mut operands = all.into_iter();
        while let Some(left) = operands.next() {
            joined.push(match operands.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        all = joined;
    }
    all.pop().unwrap_or(Expr::Literal(Val::Null))
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Made(Arc::from(text))
    }
}
