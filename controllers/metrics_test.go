package controllers_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var _ = Describe("Metrics", func() {
	It("name a node only while it holds a grant, and show how overdue it is (behaviour 26)", func() {
		f := makeFleet(2)
		p := f.policy("workers")
		phases := func() []string { return labelsOf("reboot_operator_reboot_phase_seconds", p.Name, "node", "phase") }
		overdue := func() []string { return labelsOf("reboot_operator_overdue_seconds", p.Name, "node", "reason") }
		f.need(f.nodes...)
		name := f.next()
		Eventually(phases).Should(Equal([]string{name + " Granted"}))
		Expect(overdue()).To(BeEmpty())
		f.start(name)
		Eventually(phases).Should(Equal([]string{name + " Draining"}))
		f.commit(name)
		Eventually(phases).Should(Equal([]string{name + " Rebooting"}))
		f.passes(name, time.Hour)
		Eventually(overdue).Should(Equal([]string{name + " RebootTimedOut"}))
		f.boot(name, 2)
		Eventually(phases).ShouldNot(ContainElement(HavePrefix(name)))
		Expect(overdue()).To(BeEmpty())
	})

	It("begin at 0, because Prometheus sees no increase in a counter that begins at 1", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		results := func() []string { return labelsOf("reboot_operator_reboots_total", p.Name, "engine", "result") }
		Eventually(results).Should(ContainElements("UpdateStaged succeeded", "SentinelPresent aborted", "Requested timed_out"))
		Expect(countOf("reboot_operator_reboots_total", p.Name, "succeeded")).To(BeZero())
		Expect(labelsOf("reboot_operator_notifications_total", p.Name, "event", "result")).To(ContainElements("Halted failed", "Back dropped"))
		Expect(countOf("reboot_operator_notifications_total", p.Name, "failed")).To(BeZero())
	})

	It("count the nodes that no policy selects", func() {
		f := makeFleet(1)
		nobodys := func() []string { return labelsOf("reboot_operator_blocked_nodes", "", "reason") }
		f.need(f.nodes[0])
		Eventually(nobodys).Should(Equal([]string{"NoPolicy"}))
		f.policy("workers")
		Eventually(nobodys).Should(BeEmpty())
	})

	It("are removed with their policy", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		f.need(f.nodes...)
		Eventually(seriesOf).WithArguments(p.Name).ShouldNot(BeZero())
		Eventually(f.granted).Should(HaveLen(1))
		f.delete()
		Expect(api.Delete(GinkgoT().Context(), p)).To(Succeed())
		Eventually(seriesOf).WithArguments(p.Name).Should(BeZero())
	})
})

// labelsOf returns the values of some labels for each of a policy's series of a metric.
func labelsOf(name, policy string, keys ...string) (found []string) {
	forSeries(func(family string, labels map[string]string, _ float64) {
		if family != name || labels["policy"] != policy {
			return
		}
		values := make([]string, len(keys))
		for i, key := range keys {
			values[i] = labels[key]
		}
		found = append(found, strings.Join(values, " "))
	})
	return found
}

// seriesOf returns the number of series of a policy.
func seriesOf(policy string) (n int) {
	forSeries(func(_ string, labels map[string]string, _ float64) {
		if labels["policy"] == policy {
			n++
		}
	})
	return n
}

// gaugesOf returns the values of a policy's metric by the values of a label.
func gaugesOf(name, policy, by string) map[string]float64 {
	values := map[string]float64{}
	forSeries(func(family string, labels map[string]string, value float64) {
		if family == name && labels["policy"] == policy {
			values[labels[by]] = value
		}
	})
	return values
}

// countOf returns a counter's value for a policy and a result.
func countOf(name, policy, result string) (sum float64) {
	forSeries(func(family string, labels map[string]string, value float64) {
		if family == name && labels["policy"] == policy && labels["result"] == result {
			sum += value
		}
	})
	return sum
}

// failures returns the counters of failed reboots by engine and result.
func failures(policy string) map[string]float64 {
	found := map[string]float64{}
	forSeries(func(family string, labels map[string]string, count float64) {
		if family == "reboot_operator_reboots_total" && labels["policy"] == policy && labels["result"] != "succeeded" && count > 0 {
			found[labels["engine"]+" "+labels["result"]] = count
		}
	})
	return found
}

// sumOf returns the sum of a metric of controller-runtime for one controller, or for all if it is
// empty.
func sumOf(name, controller string) (sum float64) {
	forSeries(func(family string, labels map[string]string, value float64) {
		if family == name && (controller == "" || labels["controller"] == controller || labels["name"] == controller) {
			sum += value
		}
	})
	return sum
}

// forSeries visits each series, with the value of a counter or a gauge.
func forSeries(visit func(family string, labels map[string]string, value float64)) {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			visit(family.GetName(), labels, m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
}
