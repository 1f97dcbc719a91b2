package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// fleetOf are nodes that run what the words say, such as "flatcar stable 4593.1.0" or "ubuntu - 24.04". Those with an exclamation mark
// need a reboot.
func fleetOf(runs ...string) situation {
	hosts := make([]*host, len(runs))
	for i, run := range runs {
		words := strings.Fields(strings.TrimSuffix(run, "!"))
		hosts[i] = newHost(fmt.Sprintf("n%02d", i))
		if strings.HasSuffix(run, "!") {
			hosts[i] = needy(hosts[i].name)
		}
		for j, key := range []string{v1alpha1.LabelOSID, v1alpha1.LabelOSGroup, v1alpha1.LabelOSVersion} {
			if j < len(words) && words[j] != "-" {
				label(key, words[j])(hosts[i])
			}
		}
	}
	return one(policy("workers"), hosts...)
}

func TestVersions(t *testing.T) {
	version := func(version string, nodes, withoutNeed int32) v1alpha1.VersionNodes {
		return v1alpha1.VersionNodes{Version: version, Nodes: nodes, WithoutNeed: withoutNeed}
	}
	for name, tc := range map[string]struct {
		runs []string
		want []v1alpha1.SystemVersions
	}{
		"no agent has reported":            {[]string{"", ""}, nil},
		"a rolling release has no version": {[]string{"arch - -"}, nil},
		"all run the same": {
			[]string{"flatcar stable 4593.1.0", "flatcar stable 4593.1.0!"},
			[]v1alpha1.SystemVersions{{OS: "flatcar", Group: "stable", Nodes: 2, Newest: "4593.1.0", OnNewest: 2}},
		},
		"some are behind, and have asked for nothing": {
			[]string{"flatcar stable 4593.1.0", "flatcar stable 4459.2.1!", "flatcar stable 4459.2.0", "flatcar stable 4459.2.0!"},
			[]v1alpha1.SystemVersions{{
				OS: "flatcar", Group: "stable", Nodes: 4, Newest: "4593.1.0", OnNewest: 1,
				Others: []v1alpha1.VersionNodes{version("4459.2.1", 1, 0), version("4459.2.0", 2, 1)},
			}},
		},
		"numbers are compared as numbers": {
			[]string{"a - 9.9", "a - 10.1", "a - 10", "a - 10.01", "a - 99999999999999999999999.1"},
			[]v1alpha1.SystemVersions{{
				OS: "a", Nodes: 5, Newest: "99999999999999999999999.1", OnNewest: 1,
				Others: []v1alpha1.VersionNodes{version("10.1", 1, 1), version("10.01", 1, 1), version("10", 1, 1), version("9.9", 1, 1)},
			}},
		},
		"what does not compare is listed as it is": {
			[]string{"a - 9.0", "a - v10.0", "a - 11.0_odd", "a - 8.."},
			[]v1alpha1.SystemVersions{{
				OS: "a", Nodes: 4, Newest: "9.0", OnNewest: 1,
				Others: []v1alpha1.VersionNodes{version("v10.0", 1, 1), version("8..", 1, 1), version("11.0_odd", 1, 1)},
			}},
		},
		"nothing compares": {
			[]string{"a - trixie", "a - bookworm"},
			[]v1alpha1.SystemVersions{{OS: "a", Nodes: 2, Others: []v1alpha1.VersionNodes{version("trixie", 1, 1), version("bookworm", 1, 1)}}},
		},
		"systems and channels are counted apart": {
			[]string{"flatcar beta 4628.0.0", "flatcar stable 4593.1.0", "flatcar stable 4593.1.0", "ubuntu - 24.04"},
			[]v1alpha1.SystemVersions{
				{OS: "flatcar", Group: "stable", Nodes: 2, Newest: "4593.1.0", OnNewest: 2},
				{OS: "flatcar", Group: "beta", Nodes: 1, Newest: "4628.0.0", OnNewest: 1},
				{OS: "ubuntu", Nodes: 1, Newest: "24.04", OnNewest: 1},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "versions", tc.want, fleetOf(tc.runs...).plan().Versions)
		})
	}
}

// TestVersions_WithoutNeed: where there are more versions than a status lists, those stay whose nodes have asked for nothing, the oldest first.
func TestVersions_WithoutNeed(t *testing.T) {
	runs := []string{"a - 1", "a - 2!", "a - 3"}
	for version := range 9 {
		runs = append(runs, fmt.Sprintf("a - 1%d!", version))
	}
	var got []string
	for _, v := range fleetOf(runs...).plan().Versions[0].Others {
		got = append(got, v.Version)
	}
	same(t, "versions", []string{"17", "16", "15", "3", "1"}, got)
}

// TestVersions_AreBounded: whatever agents report, the status stays small.
func TestVersions_AreBounded(t *testing.T) {
	var runs []string
	for system := range 20 {
		for version := range 20 {
			runs = append(runs, fmt.Sprintf("os-%d - %d", system, version))
		}
	}
	got := fleetOf(runs...).plan().Versions
	if len(got) != 8 {
		t.Errorf("%d systems", len(got))
	}
	for _, s := range got {
		if s.Newest != "19" || s.Nodes != 20 || len(s.Others) != 5 || s.Others[0].Version != "4" {
			t.Errorf("got %+v", s)
		}
	}
}
