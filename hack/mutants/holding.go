package main

import "slices"

// stolen is the test with what a stolen identity could do.
const stolen = "TestAStolenIdentityCanDoWhatTheDocumentationSays"

// holding is what Freshbind's own policies hold it to.
var holding = slices.Concat(at("webhooks/ownpolicies.go", in("test/chart", []mutant{
	{check: "own policies: no spec", old: `specBesides(own.Converted), `, broken: ``, test: stolen},
	{check: "own policies: no new field in a spec", old: "[k] : ` + ours(\"k\") + `) && `", broken: "[k] : true) && `", test: stolen},
	{check: "own policies: no field changes that versions of the API exchange", old: "k in ` + before + ` ? ` + before", broken: "` + ours(\"k\") + ` || k in ` + before + ` ? ` + ours(\"k\") + ` || ` + before", test: stolen},
	{check: "own policies: no owners", old: `unchanged("metadata.?ownerReferences"), `, broken: ``, test: stolen},
	{check: "own policies: no finalizers", old: `unchanged("metadata.?finalizers"),`, broken: ``, test: stolen},
	{check: "own policies: no label of others changes or comes", old: "after + `.all(k, ` + ours", broken: "after + `.all(k, true || ` + ours", test: stolen},
	{check: "own policies: no label of others goes", old: "before + `.all(k, ` + ours", broken: "before + `.all(k, true || ` + ours", test: stolen},
	{check: "own policies: no input is written", old: `keysBesides("annotations", writtenAnnotations)`, broken: `keysBesides("annotations", append(writtenAnnotations, settings.EnforcementKey))`, test: stolen},
	{check: "own policies: no Sandbox is created", old: "deletesIt + ` && ` + own.Idle", broken: "createsIt + ` || ` + own.Idle", test: stolen},
	{check: "own policies: revisions that were a template's", old: "ownersOf(\"oldObject\") + `.exists(o, ` + isTemplate", broken: "ownersOf(\"oldObject\") + `.exists(o, true || ` + isTemplate", test: stolen},
	{check: "own policies: revisions that become a template's", old: "ownersOf(\"object\") + `.exists(o, ` + isTemplate", broken: "ownersOf(\"object\") + `.exists(o, true || ` + isTemplate", test: stolen},
})), at("webhooks/ownpolicies.go", []mutant{
	{check: "own policies: revisions of other platforms' templates", old: `append([]platform.Admission{a}, others...)`, broken: `[]platform.Admission{a}`, test: "TestOnePolicyIsOnTheRevisionsOfAllPlatforms"},
	{check: "own policies: one on revisions", old: `|| a.Suffix != "" {`, broken: `{`, test: "TestOnePolicyIsOnTheRevisionsOfAllPlatforms"},
}), at("internal/platform/agentsandbox/ownwrites.go", in("test/chart", []mutant{
	{check: "own policies: no sandbox of a claim's goes", old: " && !` + celOldOwners + `.exists(o, ` + claimOwner + `)`", broken: "`", test: stolen},
	{check: "own policies: no Pod that has a node goes", old: "oldObject.spec.?nodeName.orValue('') == ''", broken: "true", test: stolen},
	{check: "own policies: no Pod that is controlled goes", old: "!= '' && !` + celOldOwners", broken: "!= '' || !` + celOldOwners", test: stolen},
	{check: "own policies: no status but the node", old: "k in ` + celOldStatus + ` && ` +", broken: "true || ` +", test: stolen},
})), at("webhooks/ownpolicies.go", []mutant{
	{check: "own policies: for Freshbind", old: `platform.When("by-freshbind"`, broken: `platform.When("by-others"`, test: "TestOwnPoliciesHoldFreshbindEverywhere"},
	{check: "own policies: not for dry runs", old: `!request.?dryRun`, broken: `request.?dryRun`, test: "TestOwnPoliciesHoldFreshbindEverywhere"},
}), at("internal/doctor/podrights.go", []mutant{
	{check: "doctor: bare Pods that stay", old: `GroupKind() == pools.GroupKind()`, broken: `GroupKind() != pools.GroupKind()`, test: "TestPodsThatOnlyFreshbindTakesAway/a member"},
	{check: "doctor: Pods that wait for nobody", old: `"spec.nodeName": ""}`, broken: `"spec.nodeName": "x"}`, test: "TestPodsThatOnlyFreshbindTakesAway/waits for a scheduler of once"},
}))

// making is what Freshbind does about its certificate where nobody else does.
var making = slices.Concat(at("internal/selfcert/issue.go", []mutant{
	{check: "certificates: renewed in time", old: `c.NotAfter.Sub(c.NotBefore)*2/3`, broken: `c.NotAfter.Sub(c.NotBefore)*2`, test: "TestIssue/two thirds of the leaf's life"},
	{check: "certificates: the CA has its key", old: `!certs[0].IsCA || !samePublicKey(certs[0], key)`, broken: `!certs[0].IsCA`, test: "TestIssue/a CA of another key"},
	{check: "certificates: the CA keeps its key", old: `return nil, key, true`, broken: `return nil, nil, true`, test: "TestIssue/no CA, but its key"},
	{check: "certificates: of this CA", old: ` && pair.Leaf.CheckSignatureFrom(ca) == nil`, broken: ``, test: "TestIssue/the leaf is of another CA"},
	{check: "certificates: for these names", old: ` && slices.Equal(pair.Leaf.DNSNames, names)`, broken: ` && (true || slices.Equal(nil, names))`, test: "TestIssue/another name"},
	{check: "certificates: clocks that are behind", old: `NotBefore: now.Add(-backdated), NotAfter: now.Add(leafLife)`, broken: `NotBefore: now, NotAfter: now.Add(leafLife)`, test: "TestIssue/clocks that are behind by an hour"},
}), at("internal/selfcert/keeper.go", []mutant{
	{check: "certificates: another CA is trusted", old: `if !found {`, broken: `if old, _, _ := unstructured.NestedString(webhooks[0].(map[string]any), "clientConfig", "caBundle"); !found || old != "" {`, test: "TestTheAPIServerIsToldOfTheCA"},
}))
