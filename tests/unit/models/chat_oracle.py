#!/usr/bin/env python3
"""Cases of chat templates, rendered by Jinja as Hugging Face transformers does:

    chat_oracle.py FILE   writes templates, messages and what they become

Needs: pip install jinja2"""
import datetime
import json
import random
import sys

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

# In the manner of published templates: one for each way of writing that they have.
TEMPLATES = {
    'turns': """{% for message in messages %}
{{ '<|' + message['role'] + '|>' + message['content'] + eos_token }}
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}
""",
    'marks': """{%- if messages[0].role == 'system' -%}
    {%- set system = messages[0].content | trim -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set system = 'You are "kind".' -%}
    {%- set rest = messages -%}
{%- endif -%}
{{- bos_token ~ '[S]' ~ system ~ '[/S]\\n' -}}
{%- for m in rest -%}
    {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('Roles must alternate user/assistant/user/...') -}}
    {%- endif -%}
    {%- if m.role == 'user' %}
        {{- '[U] ' + m.content.strip() + ' [/U]' }}
    {%- elif m.role == 'assistant' and loop.last %}
        {{- m.content | upper if m.content == 'ok' else m.content }}
    {%- else %}
        {{- ' ' ~ m.content ~ eos_token }}
    {%- endif %}
{%- endfor %}
""",
    'blocks': """Header
{% if add_generation_prompt is defined and add_generation_prompt %}
  prompt: {{ add_generation_prompt }}
{% endif %}
{# a comment #}
  {%+ if tools is not none %}tools{% endif %}
{% for role, count in {'user': 1, 'assistant': 2}.items() %}
    {{ role }}={{ count }}{{ ',' if not loop.last }}
{% else %}
nothing
{% endfor %}
{{ messages | length }} messages; {{ messages | map(attribute='role') | join('|') }}
{{- messages | selectattr('role', 'equalto', 'user') | list | tojson }}
{{ messages[-1] | tojson(indent=2) }}
""",
    'namespace': """{% set ns = namespace(found=false, last='', count=0) %}
{% for m in messages if m.content is string and m.content %}
{% set ns.count = ns.count + 1 %}
{% if 'a' in m.content and m.role not in ['system', 'tool'] %}{% set ns.found = true %}{% set ns.last = m.content %}{% continue %}{% endif %}
{% if ns.count >= 3 %}{% break %}{% endif %}
{{ loop.index }}/{{ loop.length }}:{{ m.content | replace('e', '3') | trim }}
{% endfor %}
{{ ns.found }} {{ ns.last }} {{ ns.count // 2 }} {{ ns.count / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 }}
""",
    'macros': """{% macro turn(m, prefix='> ', suffix=eos_token) -%}
{{ prefix }}{{ m.role | capitalize }}: {{ m.content }}{{ suffix }}
{%- endmacro %}
{% for m in messages %}{{ turn(m) }}|{{ turn(m, suffix='') }}|{{ turn(m, '', prefix='') if false else turn(prefix='*', m=m) }}
{% endfor %}
""".replace("turn(m, '', prefix='') if false else ", ''),
    'values': """{{ none }} {{ true }} {{ [1, 'a', none, {'k': "it's"}] }} {{ undefined_name }} {{ undefined_name | default('absent') }}
{{ 'x' * 1 if false else 'y' }} {{ 1 < 2 <= 2 }} {{ not 1 == 2 and (none or 'or') }} {{ 'abc'[1:] ~ 'abc'[::-1] ~ 'abc'[-1] }}
{{ 'a,b,,c'.split(',') }} {{ '  p  q '.split() }} {{ 'a b c'.split(' ', 1)[-1] }} {{ 'role' in messages[0] }} {{ messages[0].get('name', 'anonymous') }}
{{ 'Hello'.startswith('He') }} {{ 'x'.endswith('y') }} {{ 'aXbX'.replace('X', '-') }} {{ "\\n" | tojson }} {{ 'é"\\\\' | tojson }} {{ range(3) | list }}
{% set a, b = 1, 'two' %}{{ a }}{{ b }} {% set block %}in {{ a }} block{% endset %}{{ block }}
{{ messages[0] is mapping }} {{ messages is iterable }} {{ 3 is odd }} {{ 4 is divisibleby 2 }} {{ messages | first | length }} {{ 'abc' | last }}
{{ dict(a=1, b='c') }} {{ [3, 1, 2] | sort | reverse | list }} {{ 'l1\\nl2' | indent(2) }} {{ '12' | int + 1 }} {{ [1, 1, 2] | unique | list }} {{ 5 | abs }} {{ 2 ~ 3 }}
""".replace("{{ 'x' * 1 if false else 'y' }} ", ''),
    'errors': "{{ messages[0].content.absent.deeper }}",
    'generation': "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
}
CONTENTS = ['hello', ' padded  ', '', 'a line\nand another\n', 'quotes \' and "', 'ünïcödé 😀', 'ok', '{{ not a template }}', '<b>&amp;</b>']


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made.filters['tojson'] = tojson
    made.globals['raise_exception'] = raise_exception
    made.globals['strftime_now'] = lambda form: datetime.datetime.now().strftime(form)
    return made


class Generation(jinja2.ext.Extension):
    tags = {'generation'}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(['name:endgeneration'], drop_needle=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    r = random.Random(3)
    cases = []
    for name, source in TEMPLATES.items():
        template = environment().from_string(source)
        for _ in range(12):
            roles = (['system'] if r.random() < 0.4 else []) + ['user', 'assistant'] * 3
            messages = [{'role': role, 'content': r.choice(CONTENTS)} for role in roles[:r.randrange(1, 6)]]
            if r.random() < 0.1:
                messages.reverse()
            one = {'name': name, 'template': source, 'messages': messages, 'add_generation_prompt': r.random() < 0.5}
            try:
                one['text'] = template.render(messages=messages, add_generation_prompt=one['add_generation_prompt'], tools=None, documents=None,
                                              bos_token='<s>', eos_token='</s>')
            except jinja2.exceptions.TemplateError as error:
                one['error'] = str(error)
            cases.append(one)
    with open(sys.argv[1], 'w') as out:
        out.write('[' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases) + ']\n')


main()
