package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Documents as json.Marshal prints them: keys in order, and <, > and & as escapes.
var documents = []string{
	`{"apiVersion":"v1","big":9007199254740993,"bigger":18446744073709551615,"kind":"Thing","metadata":{"annotations":{"a.b/c":"x","example.org/note":"1","star*":"s","pipe|d":"p"},"labels":{"app":"web","tier":"front"},"name":"web","namespace":"shop"},"neg":-9223372036854775808,"spec":{"a":{"b":{"c":1}},"empty":{},"enabled":true,"f":1.5,"image":"nginx:1.25","items":[{"name":"one","port":80,"tags":["x","y"]},{"name":"two","port":443,"tags":[]},{"name":"three","port":8080}],"list":[1,2,3],"mixed":[1,"a",null,true,{"k":"v"},[9,8]],"nested":[[1,2],[3,[4]]],"nil":null,"off":false,"text":"a <b> & \"c\""},"status":{"conditions":[{"reason":"Ok","status":"True","type":"Ready"},{"status":"False","type":"Synced"}],"phase":"Running"}}`,
	`{"":"empty","#":5,"-1":"minus","0":"zero","1":{"2":"two"},"@this":"at","a.b":{"c.d":7},"a\\b":"back","k*":"star","key with space":1,"q?":"mark","x":{"":{"":"deep"}},"ü":{"ß":"sz"},"!x":"bang","[a]":"brackets"}`,
	`{"groups":[{"members":[{"id":1,"name":"ann"},{"id":2,"name":"bob"}],"name":"g1"},{"members":[],"name":"g2"},{"members":[{"id":3,"name":"cy"}],"name":"g3","on":true},{"name":"g4","on":"true"},{"name":"g5","on":0},{"name":"g6","on":null}],"json":"{\"in\":[1,{\"x\":2}]}","nums":[3,1.5,-2,1000,9007199254740993],"strs":["alpha","beta","gamma","be*ta"],"refs":{"b":["s1","s2"],"a":["s3","s4"]},"objs":[{"b":1,"c":2},{"a":3,"b":4},7]}`,
}

var reads = strings.Split(`apiVersion
metadata.name
metadata.annotations.a\.b/c
metadata.annotations.example\.org/note
metadata.annotations.example.org/note
metadata.annotations.star\*
metadata.annotations.pipe\|d
metadata.annotations.pipe|d
metadata.annotations.*
metadata.annotations.ex*
metadata.labels.a?p
metadata.labels.?pp
metadata.*.app
metadata.l*.t*
*.name
*
**
*.*.*
spec.a
spec.a.b.c
spec.a.b.c.d
spec.a.*.c
spec.empty
spec.empty.x
spec.nil
spec.nil.x
spec.f
spec.off
spec.text
big
bigger
neg
spec.list
spec.list.0
spec.list.2
spec.list.3
spec.list.-1
spec.list.01
spec.list.+1
spec.list.99999999999999999999
spec.list.#
spec.list.#.x
spec.list.a
spec.list.*
spec.items.#
spec.items.#.name
spec.items.#.tags
spec.items.#.tags.#
spec.items.#.tags.0
spec.items.#.tags|0
spec.items.#.tags|@flatten
spec.items.#.missing
spec.items.#.name|0
spec.items.#.name|#
spec.items.0.name
spec.items.1.tags
spec.items.1.tags.0
spec.items.5.name
spec.items.#(name=="two")
spec.items.#(name=="two").port
spec.items.#(name=two).port
spec.items.#(name="two")#.port
spec.items.#(port>100).name
spec.items.#(port>100)#.name
spec.items.#(port>=80)#.name
spec.items.#(port<443).name
spec.items.#(port<=443)#.port
spec.items.#(port!=443)#.name
spec.items.#(name!="two")#.name
spec.items.#(name%"t*")#.name
spec.items.#(name%"t*").name
spec.items.#(name!%"t*").name
spec.items.#(name>"one")#.name
spec.items.#(name<"p").name
spec.items.#(name<="one").name
spec.items.#(name>="two")#.name
spec.items.#(tags)#.name
spec.items.#(tags.0)#.name
spec.items.#(tags.#(=="x")).name
spec.items.#(tags.#(=="x"))#.name
spec.items.#(name=="none")
spec.items.#(name=="none")#
spec.items.#(name=="none")#.port
spec.items.#(name=="none").port
spec.items.#(name=="none")#|@keys
spec.items.#(name=="two")#|0.port
spec.items.#(name=="two")|port
spec.items.#(name=="two
spec.items.#()
spec.items.#(
spec.items.#[name=="two"].port
spec.items.#[name="two"]#.port
spec.items.#( name == "two" ).port
spec.items.#(name==two)|name
spec.items.##
spec.items.#x
spec.items.a#
spec.mixed.#(=="a")
spec.mixed.#(==1)
spec.mixed.#(>0)
spec.mixed.#(==true)
spec.mixed.#(==null)
spec.mixed.#(k)
spec.mixed.#(k).k
spec.mixed.#(k=="v")#
spec.mixed.4.k
spec.mixed.5.0
spec.mixed.2
spec.mixed.#.k
spec.list.#(>1)
spec.list.#(>1)#
spec.list.#(>=2)#|#
spec.list.#(!=2)#
spec.list.#(<3)#
spec.list.#(%"1")#
spec.nested.#.0
spec.nested.#.#
spec.nested.0.1
spec.nested.1.1.0
spec.nested.#.1.0
spec.nested|@flatten
spec.nested|@flatten:{"deep":true}
spec.nested.@flatten
spec.nested.@flatten.1
status.conditions.#(type=="Ready").status
status.conditions.#(type=="Ready").reason
status.conditions.#(reason).type
status.conditions.#(status=="False")#.type
status.conditions.#.type
status.conditions.#(type=="X").status
status.phase
status.phase.x
metadata.labels.@keys
metadata.labels.@values
metadata.labels|@keys
metadata.labels|@keys|0
metadata.labels.@keys.#
metadata.labels.@reverse
metadata.labels.@reverse.@keys
spec.list.@reverse
spec.list.@reverse.0
spec.list|@reverse|0
spec.list.@this
spec.list.@this.#
spec.list.@tostr
spec.f.@tostr
spec.image.@tostr
spec.list|@tostr
spec.list|@ugly
spec.list|@valid
spec.missing|@keys
spec.missing|@values
spec.missing|@tostr
spec.missing|@this
spec.missing|@flatten
spec.missing.@keys
missing.x|@keys
spec.items.@values
spec.items.#.@keys
spec.items.#.@this.name
spec.image.@keys
spec.image.@values
spec.image|@fromstr
@this
@this.kind
@this|kind
@keys
@values.0
@unknown
spec.@unknown
spec.@keys
spec.a.@dig:c
spec|@dig:name
spec.@dig:port
@dig:name
@dig:tags.0
@dig:nothing
[kind,apiVersion]
{kind,apiVersion}
{"k":kind,"v":apiVersion}
{k:kind}
{"k":kind}.k
[kind,spec.list.0].1
spec.[image,f]
spec.{image,"n":list.#}
spec.items.#.[name,port]
spec.items.#.{name,port}
spec.items.0.[name,missing]
[missing]
{spec.items.#.name}
{"a":spec.items.#(port>100)#.name,"b":kind}
!"text"
!true
!5
!{"a":1}.a
spec.!"x"
kind|!"x"
[kind,!"x"]
spec.
.spec
spec..a
..
..0
..0.kind
..#
..#.kind
.
|
kind|
|kind
spec|list|1
spec|items|#.name
a\.b.c\.d
a\.b
a.b
k\*
k*
q\?
key with space
ü.ß
\ü.ß
x..
x.
-1
0
1.2
:0
:1.2
#
\#
\@this
a\\b
!x
[a]
\[a]
groups.#.name
groups.#.members
groups.#.members.#.name
groups.#.members.#.id
groups.#.members.0.name
groups.#(name=="g1").members.#.name
groups.#(name=="g1").members.#(id>1).name
groups.#(name=="g1").members.#(id>1)#.name
groups.#(members.#(id==3)).name
groups.#(members.#(name=="bob"))#.name
groups.#(name%"g?")#.members.#.id
groups.#(name%"g?")#.members.#(id>1).name
groups.#(name%"g?")#.members|0
groups.#(on==true)#.name
groups.#(on==~true)#.name
groups.#(on==~false)#.name
groups.#(on==~null)#.name
groups.#(on==~*)#.name
groups.#(on!=~*)#.name
groups.#(on==~x)#.name
groups.#(on)#.name
groups.#(on=="true").name
groups.#(on==0).name
groups.#(on==null).name
json.@fromstr
json.@fromstr.in.1.x
json|@fromstr|in.#
json|@fromstr|@keys
nums.#(>2)#
nums.#(==1.5)
nums.#(>=1000)#
nums.#(<0)
nums.#(>"2")#
nums.4
nums.3
strs.#(%"*a")#
strs.#(%"b*")
strs.#(%"be\*ta")
strs.#(!%"*a")#
strs.#(=="beta")
strs.#(>"alpha")#
strs.#(<"b")
strs.#(%"?eta")
strs.#(%"*m*")
refs.@values
refs.@values|@flatten
refs.@group
refs|@group|0.a
refs.*.0
refs.*
objs.@join
objs.@join.b
objs.@join:{"preserve":true}.b
objs.@join.@keys
objs.#.b
objs.#.@keys
objs.@flatten
objs.2.x
objs.0.@keys
groups.@reverse.0.name
groups.0.members.@this.0.name
groups.@pretty
groups.#.on
groups.*.name
groups.1*.name`, "\n")

var writes = strings.Split(`kind
metadata.name
metadata.labels.app
metadata.labels.new
metadata.labels.a\.b
metadata.annotations.a\.b/c
metadata.annotations.example\.org/note
metadata.annotations.example.org/note
metadata.annotations.star\*
metadata.annotations.star*
metadata.annotations.pipe\|d
metadata.annotations.new\.key/with\.dots
metadata.annotations.*
metadata.labels.t*
metadata.labels.none*
*.name
spec
spec.a.b.c
spec.a.b.c.d
spec.a.b.c.0
spec.a.x.y.z
spec.a.x.0
spec.a.x.2
spec.a.x.-1
spec.a.x.2.y
spec.a.x.-1.y
spec.a.x.:1
spec.a.x.:-1
spec.empty
spec.empty.x
spec.empty.0
spec.nil
spec.nil.x
spec.nil.1
spec.image.x
spec.image.0
spec.text
spec.list
spec.list.0
spec.list.1
spec.list.2
spec.list.3
spec.list.5
spec.list.-1
spec.list.-2
spec.list.01
spec.list.x
spec.list.:1
spec.list.\1
spec.list.1.x
spec.list.1.0
spec.list.-1.x
spec.list.#
spec.list.#(>1)
spec.list.#(>1)#
spec.list.#(>9)#
spec.list.*
spec.items.0.name
spec.items.0
spec.items.1
spec.items.2
spec.items.-1
spec.items.-1.name
spec.items.7.name
spec.items.#.name
spec.items.#.missing
spec.items.#.tags
spec.items.#.tags.0
spec.items.#(name=="two")
spec.items.#(name=="two").port
spec.items.#(name=="two").new
spec.items.#(port>100)#.name
spec.items.#(port>100)#
spec.items.#(name=="none").port
spec.items.0.tags.-1
spec.items.0.tags.0
spec.items.1.tags.-1
spec.items.1.tags.0
spec.items.1.tags.2
spec.items.name
spec.mixed.2
spec.mixed.4.k
spec.mixed.4.z
spec.mixed.5.-1
spec.mixed.5.1
spec.nested.1.1.0
spec.nested.1.1.3
spec.nested.0.-1
spec.@this
spec.@keys
spec|image
spec.items|0
spec.[image]
@this
@this.kind
[kind]
{kind}
!x
\@this
spec.\@at
status.phase
status.conditions.#(type=="Ready").status
status.conditions.#.status
status.conditions.-1
status.conditions.0.x.y
new
new.x
new.0
new.1.x
new.-1
new.-1.-1
new.:5
new.a\.b.c
new.
new..x
.
.x
a.
a..b
a\.b.c\.d
a\.b.x
a.b
k\*
k*
q\?
\
x\
x..
x.
-1
:-1
0
:0
:1.2
1.2
1.3
1.3.0
#
\#
ü.ß
ü.ö
key with space
a\\b
[a]
groups.#.name
groups.#.members.#.name
groups.#(name=="g1").members.#.name
groups.#(name=="g1").members.#(id>1).name
groups.#(name=="g1").members.0.name
groups.#(name=="g9").x
groups.2.members.-1
groups.2.members.-1.name
groups.1.members.-1
groups.1.members.-1.name
nums.-1
nums.4
nums.10
strs.#(%"b*")#
strs.#(=="beta")
refs.b.-1
refs.*.0
objs.2.x
objs.0.b
objs.#.b
objs.-1`, "\n")

var values = []any{"text", 42, `a <b> & "c"` + "\u00fc", true, map[string]any{"k": []any{1, "x"}}, nil, "", int64(9007199254740993)}

// JSON as Kubernetes and the agent write it.
func quoted(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// A path that is likely to hit something in this value.
func somePath(r *rand.Rand, v any) string {
	var parts []string
	for len(parts) < 6 {
		step := ""
		switch t := v.(type) {
		case map[string]any:
			var keys []string
			for k := range t {
				keys = append(keys, k)
			}
			if len(keys) == 0 {
				break
			}
			sortStrings(keys)
			k := keys[r.Intn(len(keys))]
			v = t[k]
			step = gjson.Escape(k)
			switch r.Intn(14) {
			case 0:
				step = k
			case 1:
				step = "*"
			case 2:
				if len(k) > 1 {
					step = gjson.Escape(k[:1]) + "*"
				}
			case 3:
				if len(k) > 2 {
					step = gjson.Escape(k[:2]) + "?" + "*"
				}
			case 4:
				step = "nope"
			case 5:
				step = ":" + step
			}
		case []any:
			if len(t) == 0 {
				step = []string{"0", "-1", "#", "1"}[r.Intn(4)]
				v = nil
				break
			}
			i := r.Intn(len(t))
			v = t[i]
			step = strconv.Itoa(i)
			switch r.Intn(8) {
			case 0:
				step = "#"
			case 1:
				step = "-1"
			case 2:
				step = strconv.Itoa(len(t) + r.Intn(3))
			case 3:
				if m, ok := v.(map[string]any); ok {
					for _, k := range []string{"name", "k1", "port", "a", "b"} {
						if x, ok := m[k]; ok {
							op := []string{"==", "!=", ">", "<", ">=", "<=", "%", "!%"}[r.Intn(8)]
							step = "#(" + k + op + quoted(x) + ")" + []string{"", "#"}[r.Intn(2)]
							break
						}
					}
				} else {
					op := []string{"==", "!=", ">", "<="}[r.Intn(4)]
					step = "#(" + op + quoted(v) + ")" + []string{"", "#"}[r.Intn(2)]
				}
			}
		}
		if step == "" {
			break
		}
		parts = append(parts, step)
		if r.Intn(5) == 0 {
			break
		}
	}
	if r.Intn(12) == 0 {
		parts = append(parts, []string{"@keys", "@values", "@this", "@reverse", "@tostr", "@flatten"}[r.Intn(6)])
	}
	if r.Intn(15) == 0 {
		parts = append(parts, "extra")
	}
	sep := "."
	if r.Intn(25) == 0 {
		sep = "|"
	}
	return strings.Join(parts, sep)
}

func sortStrings(s []string) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}

func someValue(r *rand.Rand, depth int) any {
	n := r.Intn(10)
	if depth == 0 && n > 5 {
		n -= 5
	}
	switch n {
	case 0:
		return nil
	case 1:
		return r.Intn(2) == 0
	case 2:
		return r.Intn(200) - 100
	case 3:
		return float64(r.Intn(1000)) / 8
	case 4, 5:
		return []string{"alpha", "beta", "", "a.b", "x*y", "1", "true", "{z}", "ü", "a<b"}[r.Intn(10)]
	case 6, 7:
		m := map[string]any{}
		for range r.Intn(5) {
			m[[]string{"name", "k1", "a.b", "port", "a", "b", "10", "x/y", "a b", "st*r"}[r.Intn(10)]] = someValue(r, depth-1)
		}
		return m
	default:
		l := []any{}
		for range r.Intn(5) {
			l = append(l, someValue(r, depth-1))
		}
		return l
	}
}

// Rows of a document follow it.
var last string

func of(document string) {
	if document != last {
		row("document", document)
		last = document
	}
}

func row(columns ...string) { fmt.Println(strings.Join(columns, "\t")) }

func printGet(document, path string) {
	of(document)
	found := gjson.Get(document, path)
	if !found.Exists() {
		row("get", quoted(path), "-", "-")
		return
	}
	text := quoted(found.String())
	if found.Raw == text || found.Raw == found.String() {
		text = "="
	}
	row("get", quoted(path), quoted(found.Raw), text)
}

// "?" stands before what is no JSON any more, "=" for what has not changed.
func outcome(document, result string, err error) string {
	if result == document && err == nil {
		return "="
	}
	if err != nil {
		return "!" + err.Error()
	}
	if !json.Valid([]byte(result)) {
		return "?" + quoted(result)
	}
	return result
}

func printSet(document, path string, value any) {
	of(document)
	result, err := sjson.Set(document, path, value)
	row("set", quoted(path), quoted(value), outcome(document, result, err))
}

func printDelete(document, path string) {
	of(document)
	result, err := sjson.Delete(document, path)
	row("delete", quoted(path), "-", outcome(document, result, err))
}

func sorted(document string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return quoted(v)
}

func printPaths() {
	for i, document := range documents {
		document = sorted(document)
		for _, path := range reads {
			// Most paths are of one document.
			if found := gjson.Get(document, path); found.Exists() || i == 0 {
				printGet(document, path)
			}
		}
		for n, path := range writes {
			if i != 0 && !gjson.Get(document, path).Exists() && n%3 != i {
				continue
			}
			printSet(document, path, values[n%len(values)])
			printDelete(document, path)
		}
	}
	r := rand.New(rand.NewSource(45))
	for range 500 {
		v := map[string]any{"list": []any{someValue(r, 2), someValue(r, 2), someValue(r, 1)}}
		v["spec"] = someValue(r, 3)
		document := quoted(v)
		if strings.Contains(document, "{z}") && r.Intn(3) > 0 {
			continue
		}
		path := somePath(r, v)
		if path == "" {
			continue
		}
		printGet(document, path)
		printSet(document, path, values[r.Intn(len(values))])
		printDelete(document, path)
	}
}
