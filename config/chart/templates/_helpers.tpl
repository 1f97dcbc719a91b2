{{/* The identity of the agents, node or serviceaccount, which is also the name of a file. */}}
{{- define "reboot-operator.identity" -}}
{{- if ne .Values.identity "auto" -}}
{{- .Values.identity -}}
{{- else -}}
{{- ternary "node" "serviceaccount" (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{/* The image of a program. Arguments: root, name. */}}
{{- define "reboot-operator.image" -}}
{{- $all := .root.Values.image -}}
{{- $own := (index .root.Values .name).image | default dict -}}
{{- $repository := $own.repository | default (printf "%s/%s" $all.repository .name) -}}
{{- with $own.registry | default $all.registry | default (default dict .root.Values.global).imageRegistry -}}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") -}}
{{- end -}}
{{- $image := printf "%s:%s" $repository ($own.tag | default $all.tag | default .root.Chart.AppVersion) -}}
{{- with $own.digest }}{{ $image = printf "%s@%s" $repository . }}{{ end -}}
{{- if not (contains "@sha256:" $image) -}}
{{- if has (regexFind ":[^:/]+$" $image) (list "" ":latest" ":unreleased") -}}
{{- fail (printf "%s is not the image of a release: set image.tag or %s.image to a tag or a digest, or install the chart of a release" $image .name) -}}
{{- end -}}
{{- end -}}
{{- $image -}}
{{- end -}}

{{/* The Secrets for pulling images, as a list in JSON. In global they may be names. Argument: root. */}}
{{- define "reboot-operator.pullSecrets" -}}
{{- $secrets := list -}}
{{- range .Values.image.pullSecrets | default (default dict .Values.global).imagePullSecrets -}}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- toJson $secrets -}}
{{- end -}}

{{/* Refuses values that other charts have, with the name of the right one. Argument: values. */}}
{{- define "reboot-operator.checkHabits" -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "podLabels" "podAnnotations" "extraArgs" "extraEnv" "extraVolumes" "extraVolumeMounts" "resources" -}}
{{- if hasKey $ $name }}{{ fail (printf "%[1]s: managers and agents have their own: set manager.%[1]s or agent.%[1]s" $name) }}{{ end -}}
{{- end -}}
{{- range $name, $instead := dict "replicas" "manager.replicas" "replicaCount" "manager.replicas" "imagePullSecrets" "image.pullSecrets" -}}
{{- if hasKey $ $name }}{{ fail (printf "%s: set %s instead" $name $instead) }}{{ end -}}
{{- end -}}
{{- range $name := list "nameOverride" "fullnameOverride" "namespaceOverride" -}}
{{- if hasKey $ $name }}{{ fail (printf "%s: the names of the objects are fixed, because a cluster has one reboot-operator; helm --namespace sets their namespace" $name) }}{{ end -}}
{{- end -}}
{{- range $parent := list "" "manager" "agent" -}}
{{- $account := (ternary $ (index $ $parent) (eq $parent "")).serviceAccount | default dict -}}
{{- if or (hasKey $account "create") (hasKey $account "name") (and $account (eq $parent "")) -}}
{{- fail (printf "%s: the chart creates both ServiceAccounts, and admission policies use their names; only manager.serviceAccount.annotations and agent.serviceAccount.annotations can be set" (printf "%s.serviceAccount" $parent | trimPrefix ".")) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Sets the values in a Deployment or DaemonSet. Arguments: root, name, object. */}}
{{- define "reboot-operator.workload" -}}
{{- $values := index .root.Values .name -}}
{{- $template := .object.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "image" (include "reboot-operator.image" .) -}}
{{- $_ := set $container "imagePullPolicy" .root.Values.image.pullPolicy -}}
{{- $_ := set $container "args" (concat $container.args (default list $values.extraArgs)) -}}
{{- $_ := set $container "env" (concat $container.env (default list $values.extraEnv)) -}}
{{- $_ := set $container "resources" $values.resources -}}
{{- with $values.extraVolumeMounts }}{{ $_ := set $container "volumeMounts" (concat (default list $container.volumeMounts) .) }}{{ end -}}
{{- with $values.extraVolumes }}{{ $_ := set $pod "volumes" (concat (default list $pod.volumes) .) }}{{ end -}}
{{- with fromJsonArray (include "reboot-operator.pullSecrets" .root) }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- $_ := set $pod "nodeSelector" (merge (dict) (default dict $values.nodeSelector) $pod.nodeSelector) -}}
{{- range $field := list "priorityClassName" "tolerations" "affinity" -}}
{{- $_ := unset $pod $field -}}
{{- with index $values $field }}{{ $_ := set $pod $field . }}{{ end -}}
{{- end -}}
{{- $_ := set $template.metadata "labels" (merge (dict) $template.metadata.labels (default dict $values.podLabels)) -}}
{{- $_ := set $template.metadata "annotations" (merge (dict) (default dict $values.podAnnotations) $template.metadata.annotations) -}}
{{- end -}}

{{/* Makes the managers serve FleetLock, like config/components/fleetlock. Arguments: values, object. */}}
{{- define "reboot-operator.fleetlock" -}}
{{- $pod := .object.spec.template.spec -}}
{{- $container := first $pod.containers -}}
{{- $args := list "--fleetlock-bind-address=:8444" -}}
{{- if .values.requests }}{{ $args = append $args "--fleetlock-requests" }}{{ end -}}
{{- if .values.checkSource }}{{ $args = append $args "--fleetlock-check-source" }}{{ end -}}
{{- with .values.secretName -}}
{{- $args = append $args "--fleetlock-cert-dir=/etc/fleetlock" -}}
{{- $_ := set $container "volumeMounts" (append (default list $container.volumeMounts) (dict "name" "fleetlock" "mountPath" "/etc/fleetlock" "readOnly" true)) -}}
{{- $_ := set $pod "volumes" (append (default list $pod.volumes) (dict "name" "fleetlock" "secret" (dict "secretName" .))) -}}
{{- end -}}
{{- $_ := set $container "args" (concat $container.args $args) -}}
{{- $_ := set $container "ports" (append $container.ports (dict "name" "fleetlock" "containerPort" 8444)) -}}
{{- end -}}

{{/* Fails if the cluster has the CustomResourceDefinition of another release. Without a cluster (helm template) it does nothing. */}}
{{- define "reboot-operator.checkKinds" -}}
{{- $ours := fromYaml (.Files.Get "crds/rebootpolicies.yaml") -}}
{{- $theirs := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $ours.metadata.name -}}
{{- if and .Values.crds.check $theirs -}}
{{- if ne (toJson $theirs.spec.versions) (toJson $ours.spec.versions) -}}
{{- fail (printf "the cluster's CustomResourceDefinition %s is of another release, and Helm upgrades none. Apply this chart's first:\n\n  helm show crds CHART | kubectl apply --server-side --force-conflicts -f -\n\nwith CHART and --version as for this command. crds.check=false skips this check" $ours.metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Refuses fields that a RebootPolicy does not have. Helm 3 would only print the API server's warning, and a policy without its windows
reboots at any hour. Arguments: path, value, schema.
*/}}
{{- define "reboot-operator.checkFields" -}}
{{- $path := .path -}}
{{- $fields := .schema.properties -}}
{{- $items := .schema.items -}}
{{- if and $fields (kindIs "map" .value) -}}
{{- range $name, $value := .value -}}
{{- if not (hasKey $fields $name) }}{{ fail (printf "%s.%s: a RebootPolicy has no such field; kubectl explain rebootpolicy.spec lists them" $path $name) }}{{ end -}}
{{- include "reboot-operator.checkFields" (dict "path" (printf "%s.%s" $path $name) "value" $value "schema" (get $fields $name)) -}}
{{- end -}}
{{- else if and $items (kindIs "slice" .value) -}}
{{- range $i, $value := .value -}}
{{- include "reboot-operator.checkFields" (dict "path" (printf "%s[%d]" $path $i) "value" $value "schema" $items) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Adds the labels of every object. They replace none of the chart's own. Arguments: root, object. */}}
{{- define "reboot-operator.commonLabels" -}}
{{- with .root.Values.commonLabels -}}
{{- $_ := set $.object.metadata "labels" (merge (dict) (default dict $.object.metadata.labels) .) -}}
{{- with dig "template" "metadata" dict (default dict $.object.spec) -}}
{{- $_ := set . "labels" (merge (dict) .labels $.root.Values.commonLabels) -}}
{{- end -}}
{{- end -}}
{{- end -}}
