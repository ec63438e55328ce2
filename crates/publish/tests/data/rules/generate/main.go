// Prints what real Go makes of paths, of CEL, of regular expressions and of merge patches, as rows of the tables beside
// this folder.
//
//	go run . paths >../paths.tsv
//	go run . cel >../cel.tsv
//	go run . regex >../regex.tsv
//	go run . merge >../merge.tsv
package main

import "os"

func main() {
	switch os.Args[1] {
	case "paths":
		printPaths()
	case "cel":
		printExpressions()
	case "regex":
		printRewrites()
	case "merge":
		printMerges()
	}
}
