package selftest

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusal is what the API server makes of a denial of ours.
var refusal = regexp.MustCompile(`admission webhook "(?:(?:open|audit|pool)-)?(\w+)\.freshbind\.dev" denied the request: ([A-Z]\w+): `)

// judge says what an answer tells of the installation; nil when it is the
// refusal that it has to be, by this webhook and of this claim.
func judge(webhook, what, claim string, err error) error {
	if err == nil {
		return fmt.Errorf("%s was accepted: the API server did not ask webhook %s.freshbind.dev, or does not need its answer; "+
			"look at the rules, selectors and failurePolicy of ValidatingWebhookConfiguration freshbind", what, webhook)
	}
	found := refusal.FindStringSubmatch(err.Error())
	switch {
	case found != nil && found[1] == webhook && strings.Contains(err.Error(), claim):
		return nil
	case found != nil:
		return fmt.Errorf("%s was refused, but not by webhook %s.freshbind.dev: %w", what, webhook, err)
	case strings.Contains(err.Error(), "failed calling webhook"):
		return fmt.Errorf("%s: the API server gets no answer from a webhook: %w", what, err)
	case strings.Contains(err.Error(), ".freshbind.dev"):
		return fmt.Errorf("%s could not be judged: %w", what, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s was refused before webhook %s.freshbind.dev was asked: it needs the right to create and patch sandboxes, "+
			"or another admission rule is in the way: %w", what, webhook, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: the namespace does not exist, choose another one (selfTest.namespace): %w", what, err)
	}
	return fmt.Errorf("%s was not judged: %w", what, err)
}
