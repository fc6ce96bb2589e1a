package chart

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/scenario"
)

// reissuePoll is how often certificates are looked at that cert-manager gave up.
const reissuePoll = time.Second

// keyLost is what cert-manager says of a certificate whose private key it has deleted
// itself: from a late cache it makes two, keeps one, and has asked with the other
// (selfsigned.go of v1.21). It tries again after an hour.
const keyLost = "CSR not signed by referenced private key"

// reissue does what an operator does about that: no test is about it, and a machine that
// is busy meets it now and then.
func (w *world) reissue(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(certificateVersion)
	list.SetKind("CertificateList")
	if err := w.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		// The next look tells more.
		return
	}
	for i := range list.Items {
		certificate := &list.Items[i]
		if !gaveUp(certificate) {
			continue
		}
		if err := w.askForIssue(ctx, certificate, "the private key was lost"); err != nil {
			fmt.Fprintf(os.Stderr, "cert-manager gave certificate %s up (%s), and it is not renewed yet: %v\n", certificate.GetName(), keyLost, err)
			continue
		}
		fmt.Fprintf(os.Stderr, "cert-manager gave certificate %s up (%s): renewed, as cmctl renew does\n", certificate.GetName(), keyLost)
	}
}

// gaveUp reports whether cert-manager has lost the certificate's private key, and waits
// for an hour.
func gaveUp(certificate *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		message, _ := condition["message"].(string)
		return condition["type"] == "Issuing" && condition["status"] == "False" && strings.Contains(message, keyLost)
	})
}

const certificateVersion = "cert-manager.io/v1"

// askForIssue has cert-manager issue a certificate, as its own command line does.
func (w *world) askForIssue(ctx context.Context, certificate *unstructured.Unstructured, why string) error {
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	conditions = slices.DeleteFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Issuing" })
	conditions = append(conditions, map[string]any{
		"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": why,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	})
	if err := unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	return w.client.Status().Update(ctx, certificate)
}

func TestOnlyALostKeyIsReissued(t *testing.T) {
	lost := "The certificate request has failed to complete and will be retried: Error generating certificate template: " + keyLost
	for name, tc := range map[string]struct {
		condition map[string]any
		want      bool
	}{
		"given up":         {map[string]any{"type": "Issuing", "status": "False", "message": lost}, true},
		"tried again":      {map[string]any{"type": "Issuing", "status": "True", "message": lost}, false},
		"another reason":   {map[string]any{"type": "Issuing", "status": "False", "message": "the issuer says no"}, false},
		"another question": {map[string]any{"type": "Ready", "status": "False", "message": lost}, false},
		"nothing said":     {map[string]any{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			certificate := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{tc.condition}}}}
			if got := gaveUp(certificate); got != tc.want {
				t.Errorf("gaveUp() = %t, want %t", got, tc.want)
			}
		})
	}
}

// A certificate that cert-manager gave up is issued all the same.
func TestACertificateWithALostKeyIsIssued(t *testing.T) {
	w := sharedWorld(t)
	w.cleanNamespace(t)
	w.helmInstall(t)
	certificate := &unstructured.Unstructured{}
	certificate.SetAPIVersion(certificateVersion)
	certificate.SetKind("Certificate")
	key := client.ObjectKey{Namespace: namespace, Name: "freshbind-serving"}
	revision := func() int64 {
		w.must(t, w.client.Get(t.Context(), key, certificate))
		n, _, _ := unstructured.NestedInt64(certificate.Object, "status", "revision")
		return n
	}
	var before int64
	w.must(t, retry.RetryOnConflict(scenario.Conflicts, func() error {
		before = revision()
		w.must(t, unstructured.SetNestedSlice(certificate.Object, []any{map[string]any{
			"type": "Issuing", "status": "False", "reason": "Failed", "message": keyLost, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}, "status", "conditions"))
		return w.client.Status().Update(t.Context(), certificate)
	}))
	w.eventually(t, "another revision of the certificate", func(context.Context) (string, bool) {
		now := revision()
		return fmt.Sprintf("revision %d, was %d", now, before), now > before
	})
}
