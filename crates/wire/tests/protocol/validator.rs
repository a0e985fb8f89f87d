//! As much of JSON Schema (draft 2020-12) as our schema uses. A keyword that is not known here
//! fails the test that meets it, so nothing of the schema is passed over.

use std::collections::BTreeSet;

use serde_json::Value;

/// Places of the schema that a value has made use of, as JSON pointers: the properties that it
/// has, those that it goes without (followed by [`ABSENT`]), and the variants that it is.
pub(crate) type Used = BTreeSet<String>;

/// Follows the place of a property in an object that goes without it.
pub(crate) const ABSENT: &str = " (absent)";

/// A schema with its definitions.
pub(crate) struct Validator<'a>(pub(crate) &'a Value);

impl Validator<'_> {
    /// Checks a value against a definition.
    ///
    /// # Errors
    /// Where it does not fit, and how.
    pub(crate) fn check(&self, name: &str, value: &Value) -> Result<Used, String> {
        let mut used = Used::new();
        self.at(&format!("/$defs/{name}"), value, &mut used)?;
        Ok(used)
    }

    fn at(&self, place: &str, value: &Value, used: &mut Used) -> Result<(), String> {
        let schema = self.0.pointer(place).unwrap_or_else(|| panic!("no schema at {place}"));
        if schema == &Value::Bool(true) {
            return Ok(());
        }
        let keywords = schema.as_object().unwrap_or_else(|| panic!("no schema at {place}"));
        for (keyword, rule) in keywords {
            let below = format!("{place}/{keyword}");
            let fits = match keyword.as_str() {
                "description" | "default" | "examples" => Ok(true),
                "format" => {
                    assert!(FORMATS.contains(&rule.as_str().unwrap()), "unknown format {rule}");
                    Ok(true)
                }
                "$ref" => {
                    let target = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    self.at(target, value, used).map(|()| true)
                }
                "type" => Ok(of_type(rule, value)),
                "const" => Ok(value == rule),
                "enum" => Ok(rule.as_array().unwrap().contains(value)),
                "not" => Ok(self.at(&below, value, &mut Used::new()).is_err()),
                "anyOf" => self.variants(&below, rule, value, used, false),
                "oneOf" => self.variants(&below, rule, value, used, true),
                "properties" => self.properties(&below, rule, value, used),
                "required" => {
                    let names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                    Ok(value.as_object().is_none_or(|v| names.clone().all(|n| v.contains_key(n))))
                }
                "additionalProperties" => self.additional(&below, keywords, value, used),
                "items" => self.items(&below, keywords, value, used),
                "prefixItems" => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    let mut places = items.iter().zip(0..rule.as_array().unwrap().len());
                    places
                        .try_for_each(|(item, n)| self.at(&format!("{below}/{n}"), item, used))
                        .map(|()| true)
                }
                "minItems" => Ok(value.as_array().is_none_or(|v| v.len() >= size(rule))),
                "maxItems" => Ok(value.as_array().is_none_or(|v| v.len() <= size(rule))),
                "uniqueItems" => Ok(value
                    .as_array()
                    .is_none_or(|v| v.iter().enumerate().all(|(n, x)| !v[..n].contains(x)))),
                "minLength" => Ok(value.as_str().is_none_or(|v| v.chars().count() >= size(rule))),
                "maxLength" => Ok(value.as_str().is_none_or(|v| v.chars().count() <= size(rule))),
                "minimum" => {
                    let least = rule.as_i64().unwrap();
                    Ok(value.as_i64().is_none_or(|v| v >= least))
                }
                "maximum" => {
                    let most = rule.as_u64().unwrap();
                    Ok(value.as_u64().is_none_or(|v| v <= most))
                }
                "pattern" => Ok(value.as_str().is_none_or(|v| matches(rule, v))),
                other => panic!("the keyword `{other}` at {place} is not known"),
            };
            if !fits? {
                let value: String = value.to_string().chars().take(200).collect();
                return Err(format!("{value} does not fit {below}: {rule}"));
            }
        }
        Ok(())
    }

    fn variants(
        &self,
        place: &str,
        rule: &Value,
        value: &Value,
        used: &mut Used,
        one: bool,
    ) -> Result<bool, String> {
        let mut fitting = 0;
        let mut why = Vec::new();
        for n in 0..rule.as_array().unwrap().len() {
            let variant = format!("{place}/{n}");
            let mut more = Used::new();
            match self.at(&variant, value, &mut more) {
                Ok(()) => {
                    fitting += 1;
                    used.append(&mut more);
                    used.insert(variant);
                }
                Err(error) => why.push(error),
            }
        }
        match fitting {
            0 => Err(format!("no variant of {place} fits: {}", why.join("; "))),
            1 => Ok(true),
            _ => Ok(!one),
        }
    }

    fn properties(
        &self,
        place: &str,
        rule: &Value,
        value: &Value,
        used: &mut Used,
    ) -> Result<bool, String> {
        for name in rule.as_object().unwrap().keys() {
            if let Some(field) = value.get(name) {
                let property = format!("{place}/{name}");
                self.at(&property, field, used)?;
                if !field.is_null() {
                    used.insert(property);
                }
            } else if value.is_object() {
                used.insert(format!("{place}/{name}{ABSENT}"));
            }
        }
        Ok(true)
    }

    fn additional(
        &self,
        place: &str,
        beside: &serde_json::Map<String, Value>,
        value: &Value,
        used: &mut Used,
    ) -> Result<bool, String> {
        let known = beside.get("properties").and_then(Value::as_object);
        let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
        for (_, field) in value.as_object().into_iter().flatten().filter(|(n, _)| !is_known(n)) {
            if beside["additionalProperties"] == false {
                return Ok(false);
            }
            self.at(place, field, used)?;
        }
        Ok(true)
    }

    fn items(
        &self,
        place: &str,
        beside: &serde_json::Map<String, Value>,
        value: &Value,
        used: &mut Used,
    ) -> Result<bool, String> {
        let before = beside.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        for item in value.as_array().into_iter().flatten().skip(before) {
            if beside["items"] == false {
                return Ok(false);
            }
            self.at(place, item, used)?;
        }
        Ok(true)
    }
}

const FORMATS: &[&str] = &["uuid", "uint8", "uint16", "uint32", "uint64", "int32"];

fn size(rule: &Value) -> usize {
    usize::try_from(rule.as_u64().unwrap()).unwrap()
}

fn of_type(rule: &Value, value: &Value) -> bool {
    let one = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("unknown type {other}"),
    };
    rule.as_array().map_or_else(|| one(rule), |names| names.iter().any(one))
}

/// The patterns of the schema, by hand: an engine for three of them would be a dependency.
fn matches(pattern: &Value, text: &str) -> bool {
    match pattern.as_str().unwrap() {
        "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$" => {
            let lengths: Vec<usize> = text.split('-').map(str::len).collect();
            let digits = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-');
            lengths == [8, 4, 4, 4, 12] && text.bytes().all(digits)
        }
        "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$" => {
            let letters = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'z' | b'-');
            !text.is_empty()
                && text.bytes().all(letters)
                && !text.starts_with('-')
                && !text.ends_with('-')
        }
        "^([a-z:_-]+( [a-z:_-]+)*)?$" => {
            let letters = |b: u8| matches!(b, b'a'..=b'z' | b':' | b'_' | b'-');
            let word = |word: &str| !word.is_empty() && word.bytes().all(letters);
            text.is_empty() || text.split(' ').all(word)
        }
        other => panic!("unknown pattern {other}"),
    }
}
