package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// errCutMessage: a provider cut an event at the greatest length that it stores.
var errCutMessage = errors.New("the message in the wrapping ends within the event")

// unwrap calls f with each audit event that a JSON value holds: the value itself, or what is in the wrapping of
//   - CloudWatch (EKS): {"message": "…"} and {"@message": "…"}, alone or in lists under events and logEvents,
//   - Azure Monitor (AKS): {"category": "kube-audit", "properties": {"log": "…"}}, alone or in a list under records.
//
// An entry of Cloud Logging (GKE) is an event of its own shape, which parse knows.
func unwrap(value []byte, f func(event []byte) error) error {
	var inner, list []byte
	plain := false
	err := fields(value, func(key, value []byte) error {
		switch string(key) {
		case "auditID", "protoPayload":
			plain = true
		case "message", "@message", "properties":
			inner = value
		case "events", "logEvents", "records", "items":
			list = value
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case plain:
		return f(value)
	case len(list) > 0 && list[0] == '[':
		return items(list, func(value []byte) error { return unwrapOne(value, f) })
	}
	return unwrapWrapped(value, inner, f)
}

// unwrapOne unwraps an element of a list, which holds no other list.
func unwrapOne(value []byte, f func(event []byte) error) error {
	var inner []byte
	err := fields(value, func(key, value []byte) error {
		switch string(key) {
		case "message", "@message", "properties":
			inner = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	return unwrapWrapped(value, inner, f)
}

func unwrapWrapped(value, inner []byte, f func(event []byte) error) error {
	if len(inner) == 0 {
		return f(value)
	}
	if inner[0] == '{' { // Azure's properties
		var log []byte
		if err := fields(inner, func(key, value []byte) error {
			if string(key) == "log" {
				log = value
			}
			return nil
		}); err != nil {
			return err
		}
		inner = log
	}
	if len(inner) == 0 || inner[0] != '"' {
		return nil
	}
	var s string
	if err := json.Unmarshal(inner, &s); err != nil {
		return fmt.Errorf("decode the message of the wrapping: %w", err)
	}
	// Other logs of the control plane come in the same wrapping, and are text.
	text := bytes.TrimSpace([]byte(s))
	if len(text) == 0 || text[0] != '{' || !bytes.Contains(text, []byte(`"auditID"`)) {
		return nil
	}
	if err := f(text); err != nil {
		if errors.Is(err, errCut) {
			return errCutMessage
		}
		return err
	}
	return nil
}
