package exposition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		text string
		want Metrics
		err  string
	}{
		"nothing": {want: Metrics{}},
		"counter": {
			text: "# TYPE a_total counter\na_total{x=\"1\",y=\"b c\"} 1.2e+03\na_total{x=\"2\"} 4\n",
			want: Metrics{"a_total": {{map[string]string{"x": "1", "y": "b c"}, 1200}, {map[string]string{"x": "2"}, 4}}},
		},
		"gauge without labels, and without the end of its line": {text: "# TYPE a gauge\na 3", want: Metrics{"a": {{map[string]string{}, 3}}}},
		"no type":                   {text: "a 3\nab 5\n", want: Metrics{"a": {{map[string]string{}, 3}}, "ab": {{map[string]string{}, 5}}}},
		"a value that closes early": {text: `a{x="}"} 1` + "\n", want: Metrics{"a": {{map[string]string{"x": "}"}, 1}}}},
		"histogram":                 {text: "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 2\nh_count 1\n", want: Metrics{}},
		"no number": {
			text: "a many\n",
			err:  `read metrics: text format parsing error in line 1: expected float as value, got "many"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.text)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || message != tc.err {
				t.Errorf("Parse() error %q, want %q (-want,+got):\n%s", message, tc.err, diff)
			}
		})
	}
}

func TestSum(t *testing.T) {
	metrics, err := Parse("a{x=\"1\",y=\"1\"} 1\na{x=\"1\",y=\"2\"} 2\na{x=\"11\",y=\"1\"} 4\nab{x=\"1\"} 8\n")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		name   string
		labels []string
		want   float64
	}{
		"all":                    {name: "a", want: 7},
		"one label":              {name: "a", labels: []string{`x="1"`}, want: 3},
		"two labels":             {name: "a", labels: []string{`y="2"`, `x="1"`}, want: 2},
		"no such value":          {name: "a", labels: []string{`x="2"`}},
		"a label that is absent": {name: "ab", labels: []string{`y=""`}},
		"no quotes":              {name: "a", labels: []string{`x=1`}},
		"no such metric":         {name: "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := metrics.Sum(tc.name, tc.labels...); got != tc.want {
				t.Errorf("Sum() = %v, want %v", got, tc.want)
			}
		})
	}
}
