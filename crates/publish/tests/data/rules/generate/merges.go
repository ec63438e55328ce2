package main

import (
	"math/rand"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// A document that differs a little from another one.
func changed(r *rand.Rand, v any, depth int) any {
	switch t := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for _, k := range keysOf(t) {
			switch r.Intn(6) {
			case 0:
			case 1:
				m[k] = someValue(r, depth-1)
			case 2, 3:
				m[k] = changed(r, t[k], depth-1)
			default:
				m[k] = t[k]
			}
		}
		if r.Intn(3) == 0 {
			m["new"] = someValue(r, 1)
		}
		return m
	case []any:
		if r.Intn(2) == 0 {
			return v
		}
		return append(append([]any{}, t...), someValue(r, 0))
	}
	if r.Intn(3) == 0 {
		return someValue(r, 0)
	}
	return v
}

func keysOf(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sortStrings(keys)
	return keys
}

// What leads from one object to another, and what it makes of a third.
func printMerges() {
	r := rand.New(rand.NewSource(9))
	for range 300 {
		object := map[string]any{"kind": "Thing", "metadata": someValue(r, 2), "spec": someValue(r, 3)}
		before := quoted(object)
		after := quoted(changed(r, object, 3))
		local := quoted(changed(r, object, 3))
		patch, err := jsonpatch.CreateMergePatch([]byte(before), []byte(after))
		if err != nil {
			panic(err)
		}
		merged, err := jsonpatch.MergePatch([]byte(local), patch)
		if err != nil {
			panic(err)
		}
		row("merge", before, after, local, string(patch), string(merged))
	}
}
