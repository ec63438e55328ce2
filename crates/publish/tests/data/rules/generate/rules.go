package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

const object = `{"apiVersion":"v1","kind":"Thing","metadata":{"annotations":{"a/b":"x"},"creationTimestamp":"2024-02-29T13:04:05Z","labels":{"app":"web","tier":"front"},"name":"web","namespace":"shop"},"spec":{"big":9007199254740993,"empty":"","f":1.5,"image":"nginx:1.25","items":[{"name":"one","port":80},{"name":"two","port":443},{"name":"three"}],"list":[3,1,2],"mixed":[1,"a",null,true,1.0],"n":24,"neg":-7,"nil":null,"off":false,"on":true,"text":"a <b> & \"c\" \u00fc","whole":2.0,"words":["x","y","x"]}}`

const counterpart = `{"metadata":{"name":"copy"},"status":{"ready":true,"replicas":3}}`

var expressions = strings.Split(`"hei"
42
42u
1.5
2.0
1e21
1e-7
1.0e10
.5
0x1F
0x1Fu
-5
--5
-(5)
-1.5
-9223372036854775808
9223372036854775807
9223372036854775808
18446744073709551615u
true
false
null
[]
{}
[1, 2, 3]
[1, "a", null]
[1, 2,]
{"a": 1, "b": [true]}
{"a": 1,}
{1: "x", true: "y"}
{"a": 1, "a": 2}
{1: 1, 1u: 2}
{1.5: 1}
{null: 1}
'single'
"a\"b\n\t\\\x41\u00fc\U0001F600\101"
"\z"
r"a\n"
R'b\d'
"""long
text "x" """
'''x'y'''
"unterminated
b"abc"
b"\xff\x00"
b'ü'
string(b"abc")
string(b"\xff")
bytes("ü")
size(b"ü")
1 + 2
1 + 2 * 3
(1 + 2) * 3
7 / 2
-7 / 2
7 % 3
-7 % 3
7 / 0
7 % 0
7.0 / 2.0
1.0 / 0.0
-1.0 / 0.0
0.0 / 0.0
7u / 2u
1u - 2u
9223372036854775807 + 1
-9223372036854775807 - 2
4611686018427387904 * 2
-(-9223372036854775807 - 1)
"a" + "b"
[1] + [2]
b"a" + b"b"
"a" + 1
1 + 1.0
1 + 1u
{} + {}
null + null
true + true
1 == 1
1 == 1.0
1 == 1u
1u == 1.0
1 == "1"
"a" == "a"
[1, 2] == [1, 2]
[1, 2] == [1.0, 2u]
[1] == [1, 2]
{"a": 1} == {"a": 1.0}
{"a": 1} == {"b": 1}
null == null
null == false
0.0 / 0.0 == 0.0 / 0.0
1 != 2
1 < 2
1 < 1.5
2u > 1
2u > 1.5
1 <= 1
"a" < "b"
"a" >= "b"
false < true
b"a" < b"b"
[1] < [2]
null < null
1 < "a"
true && false
true || false
!true
!!true
!1
true && 1
false && 1
1 && false
1 || true
(1 / 0 > 0) || true
true || (1 / 0 > 0)
(1 / 0 > 0) && false
(1 / 0 > 0) && true
true ? 1 : 2
false ? 1 / 0 : 2
1 ? 2 : 3
true ? false ? 1 : 2 : 3
1 in [1, 2]
1.0 in [1, 2]
"a" in {"a": 1}
"b" in {"a": 1}
1 in {"a": 1}
"a" in "abc"
[1, 2][0]
[1, 2][2]
[1, 2][-1]
[1, 2][1.0]
[1, 2][1.5]
[1, 2][1u]
[1, 2]["0"]
{"a": 1}["a"]
{"a": 1}["b"]
{"a": 1}.a
{"a": 1}.b
{1: "x"}[1]
{1: "x"}[1.0]
"abc"[0]
size("abc")
size("üß")
"abc".size()
size([1, 2])
[1].size()
size({"a": 1})
size(1)
type(1)
type(1) == int
type("a") == string
type(null) == null_type
type([]) == list
type({}) == map
type(type(1)) == type
type(1.0) == double
type(1u) == uint
type(b"") == bytes
type(true) == bool
int("42")
int("-42")
int("x")
int("4.2")
int(4.9)
int(-4.9)
int(1e30)
int(7u)
int(18446744073709551615u)
uint(7)
uint(-7)
uint("7")
uint(3.9)
uint(-0.5)
double(7)
double("1.5")
double("x")
double(7u)
string(1)
string(1.0)
string(1.5)
string(1000000.0)
string(123456789.0)
string(1e20)
string(1e21)
string(1e22)
string(1e100)
string(0.0001)
string(0.00001)
string(-0.0)
string(1.0 / 0.0)
string(-1.0 / 0.0)
string(true)
string(7u)
string("a")
string(null)
string([1])
bool("true")
bool("1")
bool("yes")
bool("T")
dyn(1)
dyn([1, "a"])
"abc".contains("b")
"abc".contains("")
"abc".startsWith("ab")
"abc".endsWith("bc")
"abc".matches("^a.c$")
"abc".matches("b")
matches("abc", "^b")
"abc".matches("(")
"a\nb".matches("a.b")
"üx".matches("^.x$")
"a".upperAscii()
"a,b".split(",")
"a".foo()
foo("a")
foo
self.foo()
contains("abc", "b")
has(self.spec)
has(self.spec.n)
has(self.spec.missing)
has(self.spec.missing.deeper)
has(self.spec.n.deeper)
has(self.spec.nil)
has(self.spec.nil.x)
has(self)
has({"a": 1}.a)
self.metadata.name
self.spec.n
self.spec.n + 1
self.spec.n * 2
self.spec.n / 5
self.spec.n % 5
self.spec.neg
-self.spec.neg
self.spec.big
self.spec.big + 1
self.spec.f * 2.0
self.spec.f
self.spec.whole
self.spec.on && !self.spec.off
self.spec.nil
self.spec.nil == null
self.spec.missing
self.spec.missing == null
self.spec["image"]
self["spec"]["n"]
self.spec["missing"]
self.metadata.labels
self.metadata.labels.app + "-" + self.metadata.labels.tier
self.metadata.annotations["a/b"]
self.spec.items
self.spec.items[0].name
self.spec.items[1]
self.spec.items[9].name
self.spec.items.size()
self.spec.items.map(i, i.name)
self.spec.items.map(i, has(i.port), i.port)
self.spec.items.filter(i, has(i.port))
self.spec.items.filter(i, has(i.port) && i.port > 100).map(i, i.name)
self.spec.items.map(i, i.port)
self.spec.items.all(i, i.name != "")
self.spec.items.all(i, i.port > 0)
self.spec.items.all(i, i.port > 100)
self.spec.items.exists(i, i.port == 443)
self.spec.items.exists(i, i.port == 9)
self.spec.items.exists(i, i.name == "three")
self.spec.items.exists_one(i, i.name == "two")
self.spec.items.exists_one(i, has(i.port))
self.spec.items.exists_one(i, i.port == 80)
self.spec.list.map(x, x * 2)
self.spec.list.map(x, x > 1, x * 2)
self.spec.list.filter(x, x > 1)
self.spec.list.all(x, x > 0)
self.spec.list.exists(x, x > 2)
self.spec.list.exists_one(x, x == 2)
self.spec.list.map(x, self.spec.words.map(y, y + string(x)))
self.spec.list.map(self, self)
self.spec.words.map(x, {"k": x})
self.spec.mixed
self.spec.mixed.map(x, type(x) == int)
self.spec.mixed.filter(x, x == 1)
self.spec.labels.map(k, k)
self.metadata.labels.filter(k, k == "app")
self.metadata.labels.all(k, k != "")
self.metadata.labels.exists(k, self.metadata.labels[k] == "web")
[].all(x, false)
[].exists(x, true)
[].exists_one(x, true)
[].map(x, x)
[1, 2].map(x, 1 / (x - 1))
[1, 2].all(x, 1 / (x - 1) > 0)
[1, 2].exists(x, 1 / (x - 1) > 0)
[1, 2].all(x, x)
[1, 2].filter(x, x)
[1, 2].exists_one(x, x)
1.map(x, x)
"abc".map(x, x)
self.spec.text
self.spec.text + "!"
self.spec.text.size()
self.spec.image.startsWith("nginx:")
self.spec.image.matches("^[a-z]+:[0-9.]+$")
"image" in self.spec
"x" in self.spec.words
"z" in self.spec.words
3 in self.spec.list
other.metadata.name
other.status.replicas + 1
other.status.ready
other == null
other.spec
has(other.spec)
value
value == null
value + "x"
value.size()
self.spec == self.spec
self == other
{"name": self.metadata.name, "ports": self.spec.items.filter(i, has(i.port)).map(i, i.port)}
self.spec.items.map(i, {"n": i.name, "p": has(i.port) ? i.port : 0})
self.spec.n > 10 ? "large" : "small"
self.spec.n == 24 && self.spec.f < 2
self.spec.n < self.spec.f
self.spec.n == 24.0
self.spec.whole == 2
self.spec.list == [3, 1, 2]
timestamp("2024-02-29T13:04:05Z")
timestamp(self.metadata.creationTimestamp)
string(timestamp(self.metadata.creationTimestamp))
timestamp("2024-02-29T13:04:05.120Z")
timestamp("2024-02-29T13:04:05+02:00")
timestamp("nope")
timestamp(1709211845)
int(timestamp("2024-02-29T13:04:05Z"))
timestamp("2024-02-29T13:04:05Z").getFullYear()
timestamp("2024-02-29T13:04:05Z").getMonth()
timestamp("2024-02-29T13:04:05Z").getDate()
timestamp("2024-02-29T13:04:05Z").getDayOfMonth()
timestamp("2024-02-29T13:04:05Z").getDayOfWeek()
timestamp("2024-02-29T13:04:05Z").getDayOfYear()
timestamp("2024-02-29T13:04:05Z").getHours()
timestamp("2024-02-29T13:04:05Z").getMinutes()
timestamp("2024-02-29T13:04:05Z").getSeconds()
timestamp("2024-02-29T13:04:05.123Z").getMilliseconds()
timestamp("2024-02-29T13:04:05Z").getHours("Europe/Berlin")
timestamp("2024-02-29T23:04:05Z").getDate("+02:00")
timestamp("2024-02-29T23:04:05Z").getHours("-02:30")
timestamp("2024-02-29T23:04:05Z").getHours("Nowhere/City")
timestamp("2024-02-29T13:04:05Z") + duration("1h")
duration("1h") + timestamp("2024-02-29T13:04:05Z")
timestamp("2024-02-29T13:04:05Z") - duration("24h")
timestamp("2024-02-29T13:04:05Z") - timestamp("2024-02-28T13:04:05Z")
timestamp("2024-02-29T13:04:05Z") < timestamp("2024-03-01T00:00:00Z")
timestamp("2024-02-29T13:04:05Z") == timestamp("2024-02-29T14:04:05+01:00")
timestamp("9999-12-31T23:59:59Z") + duration("1s")
duration("1h30m")
duration("1.5s")
duration("-90s")
duration("100ms")
duration("1us")
duration("0")
duration("1")
duration("x")
duration("1h").getHours()
duration("90m").getMinutes()
duration("90m").getHours()
duration("1.5s").getMilliseconds()
duration("1.5s").getSeconds()
duration("1h") + duration("1m")
duration("1h") - duration("1m")
duration("1h") > duration("1m")
-duration("1h")
int(duration("1s"))
string(duration("1h30m"))
string(duration("1.000000001s"))
1 +
(1
[1
{"a"}
{"a": }
1 2
.self.spec.n
self.
self..a
self?.a
self[?0]
a.b.c
if
self.if
self.in
in
size()
size(1, 2)
1 + + 2
// comment
1 // comment
1 = 1
#
self.spec.items.map(i)
self.spec.items.map(1, i)
self.spec.items.all(i, i, i)
has(1)
has(self.spec["n"])
Thing{}
self.spec.n.m
self.metadata.name.x
"\377"
b"\377"
"\400"
1.
1.e3
1e3
0x
00012
1u
1U
"a" "b"
true.x
self.spec.words + ["z"]
self.spec.words[0] + self.spec.words[1]
self.spec.list[0] + self.spec.list[1]
[self.spec.list, self.spec.words]
[[1], [2, 3]].map(x, x.size())
[1, 2, 3].filter(x, x % 2 == 1).map(x, x * x)
[{"a": 1}, {"a": 2}].exists(x, x.a == 2)
{"a": {"b": {"c": 1}}}.a.b.c
!has(self.spec.missing) || self.spec.missing == 1
has(self.spec.missing) ? self.spec.missing : "default"
string(self.spec.n) + "Gi"
int(self.spec.image.size()) * 2
double(self.spec.n) / 5.0
string(self.spec.f)
string(double(self.spec.n))
size(self.metadata.labels) > 1`, "\n")

// The value as JSON, with all digits.
func plain(v ref.Val) string {
	switch t := v.(type) {
	case types.Null:
		return "null"
	case types.Bool, types.Int, types.Uint, types.Double, types.String:
		b, err := json.Marshal(t.Value())
		if err != nil {
			return "!" + err.Error()
		}
		return string(b)
	case types.Bytes:
		return quoted(base64.StdEncoding.EncodeToString(t))
	case types.Timestamp, types.Duration:
		return quoted(string(v.ConvertToType(types.StringType).(types.String)))
	case traits.Lister:
		var out []string
		for it := t.Iterator(); it.HasNext() == types.True; {
			out = append(out, plain(it.Next()))
		}
		return "[" + strings.Join(out, ",") + "]"
	case traits.Mapper:
		var out []string
		for it := t.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				name = types.String(fmt.Sprint(key.Value()))
			}
			out = append(out, quoted(string(name))+":"+plain(t.Get(key)))
		}
		sort.Strings(out)
		return "{" + strings.Join(out, ",") + "}"
	}
	return "!" + v.Type().TypeName() + " is no JSON"
}

// Whole numbers as Kubernetes reads them.
func decoded(text string) map[string]any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return numbers(v).(map[string]any)
}

func numbers(v any) any {
	switch t := v.(type) {
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		f, _ := t.Float64()
		return f
	case map[string]any:
		for k := range t {
			t[k] = numbers(t[k])
		}
	case []any:
		for i := range t {
			t[i] = numbers(t[i])
		}
	}
	return v
}

// The environment of the agent.
func evaluated(expression string) string {
	env, err := cel.NewEnv(cel.VariableDecls(
		decls.NewVariable("self", cel.DynType),
		decls.NewVariable("other", cel.DynType),
		decls.NewVariable("value", cel.DynType),
	))
	if err != nil {
		panic(err)
	}
	ast, issues := env.Compile(expression)
	if issues != nil && issues.Err() != nil {
		first, _, _ := strings.Cut(issues.Err().Error(), "\n")
		return "!!" + first
	}
	program, err := env.Program(ast)
	if err != nil {
		return "!!" + err.Error()
	}
	self := decoded(object)
	value := gjson.Get(object, "spec.words").Value()
	out, _, err := program.Eval(map[string]any{"self": self, "other": decoded(counterpart), "value": value})
	if err != nil {
		return "!" + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return plain(out)
}

func printExpressions() {
	row("self", object)
	row("other", counterpart)
	joined := ""
	for _, line := range expressions {
		// A text of several lines is one expression.
		joined += line
		if strings.Count(joined, `"""`)%2 == 1 {
			joined += "\n"
			continue
		}
		row("cel", quoted(joined), evaluated(joined))
		joined = ""
	}
}

// path, pattern, replacement
var rewrites = [][3]string{
	{"spec.image", "nginx", "httpd"},
	{"spec.image", "^([a-z]+):(.*)$", "$2:$1"},
	{"spec.image", "^([a-z]+):(.*)$", "${2}:${1}"},
	{"spec.image", "^([a-z]+):(.*)$", "$1x"},
	{"spec.image", "^([a-z]+):(.*)$", "${1}x"},
	{"spec.image", "^(?P<name>[a-z]+):(.*)$", "$name/${name}"},
	{"spec.image", "^(?P<name>[a-z]+):(.*)$", "$nam"},
	{"spec.image", "^([a-z]+):(.*)$", "$$1"},
	{"spec.image", "^([a-z]+):(.*)$", "$"},
	{"spec.image", "^([a-z]+):(.*)$", "$ 1"},
	{"spec.image", "^([a-z]+):(.*)$", "${1"},
	{"spec.image", "^([a-z]+):(.*)$", "${}"},
	{"spec.image", "^([a-z]+):(.*)$", "$9"},
	{"spec.image", "^([a-z]+):(.*)$", "$0!"},
	{"spec.image", "^([a-z]+):(.*)$", "$1_"},
	{"spec.image", "^([a-z]+):(.*)$", "$1-$2"},
	{"spec.image", "^([a-z]+):(.*)$", "${1}_$2"},
	{"spec.image", "x*", "-"},
	{"spec.image", "", "fixed"},
	{"spec.image", "(", "x"},
	{"spec.image", "(?i)NGINX", "x"},
	{"spec.image", "nothing", "x"},
	{"spec.image", ".", ""},
	{"spec.image", "\\d+", "<$0>"},
	{"spec.image", "\\pL+", "L"},
	{"spec.image", "[[:alpha:]]+", "A"},
	{"spec.image", "(?s).*", "all"},
	{"spec.image", "^.*$", "${1}"},
	{"spec.image", "(n)|(g)", "[$1|$2]"},
	{"spec.image", "\\Qng\\E", "q"},
	{"spec.image", "(?:ng)(inx)", "$1"},
	{"spec.image", "n{2,1}", "x"},
	{"spec.image", "n{1001}", "x"},
	{"spec.image", "(?=n)", "x"},
	{"spec.image", "(n)\\1", "x"},
	{"spec.image", "\\bnginx\\b", "B"},
	{"spec.n", "4", "5"},
	{"spec.n", ".+", "$0"},
	{"spec.big", "3$", "4"},
	{"spec.f", "\\.", ","},
	{"spec.on", "true", "yes"},
	{"spec.nil", "^$", "was null"},
	{"spec.missing", "^$", "was missing"},
	{"spec.missing", "x", "y"},
	{"spec.missing.deeper", "x", "y"},
	{"spec.list", "1", "9"},
	{"spec.list", "(.)", "$1"},
	{"spec.items.0", "(.)", "$1"},
	{"spec.items.#.name", "o", "0"},
	{"spec.items.#(name==\"two\").name", "t", "T"},
	{"spec.items.#(port>1)#.name", "o", "0"},
	{"spec.text", "<b>", "<i>"},
	{"spec.text", "ü", "ue"},
	{"spec.text", "(.)$", "$1$1"},
	{"metadata.labels", "web", "db"},
	{"metadata.annotations.a/b", "x", "y"},
	{"spec.list.x", "", "y"},
	{"spec.list.-1", "", "y"},
	{"spec.list.1", "", "y"},
	{"spec", "", "y"},
	{"", "", "y"},
	{"spec.empty", "^$", "filled"},
	{"spec.image|x", "", "y"},
}

func rewritten(path, pattern, replacement string) string {
	var result string
	var err error
	if pattern == "" {
		result, err = sjson.Set(object, path, replacement)
	} else {
		expr, wrong := regexp.Compile(pattern)
		if wrong != nil {
			return "!!" + wrong.Error()
		}
		result, err = sjson.Set(object, path, expr.ReplaceAllString(gjson.Get(object, path).String(), replacement))
	}
	return outcome(object, result, err)
}

func printRewrites() {
	row("self", object)
	for _, r := range rewrites {
		row("regex", quoted(r[0]), quoted(r[1]), quoted(r[2]), rewritten(r[0], r[1], r[2]))
	}
}
