{{- define "aggregator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "aggregator.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary .Release.Name "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "aggregator.pod" -}}
automountServiceAccountToken: false
# Otherwise AGGREGATOR_PORT=tcp://... of the Service would be read as the setting of that name.
enableServiceLinks: false
{{- range $name := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $.Values $name }}
{{ $name }}: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "aggregator.storageClass" -}}
{{- with .Values.storageClass }}
storageClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "aggregator.storeEnv" -}}
{{- if .Values.redis.enabled }}
- name: REDIS_URL
  value: redis://{{ .Release.Name }}-redis:6379/0
{{- else if .Values.secretSettings.store_url }}
- name: AGGREGATOR_STORE_URL
  valueFrom:
    secretKeyRef: {{- toYaml .Values.secretSettings.store_url | nindent 6 }}
{{- else }}
- name: AGGREGATOR_STORE_URL
  value: {{ required "set redis.enabled, or store_url in settings or secretSettings" .Values.settings.store_url | quote }}
{{- end }}
{{- end }}

{{- define "aggregator.env" -}}
{{ include "aggregator.storeEnv" . }}
{{- if .Values.bootstrapKeySecret }}
- name: AGGREGATOR_BOOTSTRAP_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.bootstrapKeySecret }}
      key: bootstrap-key
{{- end }}
{{- range $name, $value := omit .Values.settings "store_url" }}
- name: AGGREGATOR_{{ upper $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- range $name, $reference := omit .Values.secretSettings "store_url" }}
- name: AGGREGATOR_{{ upper $name }}
  valueFrom:
    secretKeyRef: {{- toYaml $reference | nindent 6 }}
{{- end }}
{{- end }}
