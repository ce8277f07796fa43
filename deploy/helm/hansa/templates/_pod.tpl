{{/* The pod, the same in a Deployment and in a StatefulSet. */}}

{{- define "hansa.pod" -}}
metadata:
  labels:
    {{- include "hansa.selector" . | nindent 4 }}
    app.kubernetes.io/component: {{ .Values.role }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Settings are read once, at the start: others make another pod.
    checksum/settings: {{ include "hansa.settings" . | sha256sum }}
    {{- if not .Values.existingSecret }}
    # With a salt that only the Secret has: nobody guesses a password by it.
    checksum/secret: {{ include "hansa.secretData" . | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "hansa.account" . }}
  # A hub asks nothing of Kubernetes.
  automountServiceAccountToken: {{ ne .Values.role "hub" }}
  # Otherwise a Service named hansa would become variables HANSA_…, which are no settings.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- if include "hansa.keyInSecret" . }}
  initContainers:
    # A mounted Secret is readable by a group, and a key file that others may read is refused.
    - name: key
      image: {{ include "hansa.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command:
        - /bin/sh
        - -euc
        - |
          umask 077
          mkdir -p /var/lib/hansa/hub
          cat /run/key/hub.key > /var/lib/hansa/hub/hub.key
      resources:
        requests: {cpu: 10m, memory: 16Mi}
        limits: {memory: 64Mi}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/hansa}
        - {name: key, mountPath: /run/key, readOnly: true}
  {{- end }}
  containers:
    - name: hansa
      image: {{ include "hansa.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [server]
      env:
        - name: HANSA_CONFIG
          value: /etc/hansa/hansa.toml
        {{- include "hansa.secretVariables" . | trim | nindent 8 }}
        {{- with .Values.extraEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        {{- if include "hansa.isManager" . }}
        - {name: http, containerPort: 8080}
        {{- end }}
        {{- if include "hansa.hasStore" . }}
        - {name: store, containerPort: 8333}
        {{- end }}
        {{- if include "hansa.isHub" . }}
        - {name: hub, containerPort: 7070}
        - {name: members, containerPort: 7443}
        {{- end }}
      {{- $door := ternary "hub" "http" (eq .Values.role "hub") }}
      # It answers when all it needs has started; a large database may have to be changed first.
      startupProbe:
        httpGet: {path: /health, port: {{ $door }}}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: /health, port: {{ $door }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /ready, port: {{ $door }}}
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/hansa}
        - {name: settings, mountPath: /etc/hansa, readOnly: true}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: data
      {{- if .Values.persistence.enabled }}
      persistentVolumeClaim:
        claimName: {{ include "hansa.claim" . }}
      {{- else }}
      emptyDir: {}
      {{- end }}
    - name: settings
      configMap:
        name: {{ include "hansa.fullname" . }}
    - name: tmp
      emptyDir: {}
    {{- if include "hansa.keyInSecret" . }}
    - name: key
      secret:
        secretName: {{ include "hansa.secret" . }}
        items:
          - {key: hub.key, path: hub.key}
    {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
