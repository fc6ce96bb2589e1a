package anchor

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a test starts has to end with it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
