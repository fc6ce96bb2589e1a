package revision

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFieldErrorsNameThePath(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"no field":         {problemf("must be small"), "must be small"},
		"a field":          {atField("a", problemf("must be small")), "a: must be small"},
		"one in an object": {atField("a", atField("b", problemf("must be small"))), "a.b: must be small"},
		"one in a list":    {atField("a", atIndex(1, problemf("must be small"))), "a[1]: must be small"},
		"another error":    {atField("a", errors.New("too late")), "too late"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.err.Error()); diff != "" {
				t.Errorf("error (-want,+got):\n%s", diff)
			}
		})
	}
}
