// Prints durations.tsv: what each version of Argo CD makes of a value of timeout.reconciliation, computed with the two
// parsers that it uses itself (argo-cd v3.5.1 util/env/env.go and its older tags).
//
//	cd plugins/kubectl-argo-resync/tests/durations && go run . > ../durations.tsv
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	argotime "github.com/argoproj/pkg/time"
)

// G is Go's parser alone, P the one of argoproj/pkg alone, GP the first and then the second.
var versions = []struct{ version, parser string }{
	{"2.8.0", "P"}, {"2.10.0", "P"}, {"2.13.9", "P"},
	{"2.14.0", "G"}, {"2.14.19", "G"}, {"2.14.20", "GP"},
	{"3.0.0", "G"}, {"3.0.18", "G"}, {"3.0.19", "GP"},
	{"3.1.0", "G"}, {"3.1.7", "G"}, {"3.1.8", "GP"},
	{"3.2.0", "G"}, {"3.2.12", "G"},
	{"3.3.0", "GP"}, {"3.4.7", "GP"}, {"3.5.1", "GP"},
}

var values = []string{
	"3m", "180s", "0s", "0", "2m30s", "1d", "1d12h", "180", "7d", "1h", "24h0m0s", "1.5h", "90s", "1m30s",
	"500ms", "1500ms", "0.5s", "1h0m0.5s", "1us", "1µs", "10ns", ".5m", "1.m", "+5s", "-1s", "-0s", "0m", "0d",
	"030s", "", " 30s", "30s ", "30s\n", "30 s", "30S", "30sec", "180x", "s", ".s", "1h 2m", "1w", "1e3s", "\"30s\"",
	"9223372036s", "9223372037s", "2562047h", "2562048h", "106751d", "106752d", "292471208677d",
	"9223372036854775807s", "9223372036854775808s", "9223372036854775808x", "９s",
}

func main() {
	if len(os.Args) == 3 {
		fmt.Print(outcome(os.Args[1], os.Args[2]))
		return
	}
	fmt.Println("# version\tvalue as JSON\tnanoseconds, or `default` where it is ignored, or `fatal` where the process ends")
	for _, v := range versions {
		for _, value := range values {
			text, _ := json.Marshal(value)
			// One process each: the parser of argoproj/pkg ends the process for numbers beyond 64 bits.
			out, err := exec.Command(os.Args[0], v.parser, value).Output()
			if err != nil {
				out = []byte("fatal")
			}
			fmt.Printf("%s\t%s\t%s\n", v.version, text, out)
		}
	}
}

func outcome(parser, value string) string {
	duration, ok := parse(parser, value)
	if value == "" || !ok || duration < 0 {
		return "default"
	}
	return fmt.Sprint(int64(duration))
}

func parse(parser, value string) (time.Duration, bool) {
	if parser != "P" {
		if duration, err := time.ParseDuration(value); err == nil {
			return duration, true
		}
	}
	if parser != "G" {
		if duration, err := argotime.ParseDuration(value); err == nil {
			return *duration, true
		}
	}
	return 0, false
}
