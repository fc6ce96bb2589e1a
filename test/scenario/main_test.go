package scenario

import (
	"context"
	"errors"
	"testing"
)

func TestMainsExitCode(t *testing.T) {
	failed := errors.New("failed")
	cases := map[string]struct {
		usage error
		good  bool
		err   error
		want  int
	}{
		"good":                {good: true, want: 0},
		"not good":            {want: exitFailed},
		"failed":              {good: true, err: failed, want: exitFailed},
		"options of no use":   {usage: failed, good: true, want: exitUsage},
		"neither good nor ok": {err: failed, want: exitFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Main("test", func(func(string) string) (int, error) { return 7, tc.usage },
				func(_ context.Context, o int) (bool, error) {
					if o != 7 {
						t.Errorf("options %d, want those that were read", o)
					}
					return tc.good, tc.err
				})
			if got != tc.want {
				t.Errorf("Main() = %d, want %d", got, tc.want)
			}
		})
	}
}
