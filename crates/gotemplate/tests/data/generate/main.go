// Prints what real Go and sprig give for template expressions, and what kubectl's YAML library makes of documents, as
// rows of the tables beside this folder.
//
//	go run . expressions <expressions.txt >../more_sprig_table.tsv
//	go run . documents <documents.txt >../more_yaml_table.tsv
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type data struct{ ClusterName, ClusterPath string }

// A line is an expression, or a whole template after "template:", as a text in quotes of Go.
func expression(line string) string {
	text := "{{ " + line + " }}"
	if whole, ok := strings.CutPrefix(line, "template:"); ok {
		text, _ = strconv.Unquote(`"` + whole + `"`)
	}
	parsed, err := template.New("t").Funcs(sprig.TxtFuncMap()).Parse(text)
	var out bytes.Buffer
	if err == nil {
		err = parsed.Execute(&out, &data{"2abc", "root:org:team"})
	}
	if err != nil {
		return "!" + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func document(line string) string {
	text := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r").Replace(line)
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return "!" + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return string(json)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if os.Args[1] == "documents" {
			fmt.Printf("%s\t%s\n", line, document(line))
		} else {
			fmt.Printf("2\t%s\t%s\n", line, expression(line))
		}
	}
}
