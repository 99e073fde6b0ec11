/* SPDX-License-Identifier: Apache-2.0 */
#include "text/kubename.h"

#include "frond.h"

#include <string.h>

#define PART_MAX 63u

static bool is_lower(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static bool is_alnum(char byte)
{
	return is_lower(byte) || (byte >= 'A' && byte <= 'Z');
}

/* [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])? */
static bool is_qualified(const char *text, uint64_t len, uint64_t max)
{
	if (len == 0 || len > max || !is_alnum(text[0]) || !is_alnum(text[len - 1]))
		return false;
	for (uint64_t i = 0; i < len; i++) {
		if (!is_alnum(text[i]) && text[i] != '-' && text[i] != '_' && text[i] != '.')
			return false;
	}
	return true;
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_dns_part(const char *text, uint64_t len)
{
	if (len == 0 || !is_lower(text[0]) || !is_lower(text[len - 1]))
		return false;
	for (uint64_t i = 0; i < len; i++) {
		if (!is_lower(text[i]) && text[i] != '-')
			return false;
	}
	return true;
}

bool is_node_name(const char *text, uint64_t len)
{
	if (len == 0 || len > FROND_NAME_MAX)
		return false;
	uint64_t start = 0;
	for (uint64_t i = 0; i <= len; i++) {
		if (i < len && text[i] != '.')
			continue;
		if (!is_dns_part(text + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

bool is_domain_name(const char *text, uint64_t len)
{
	return is_qualified(text, len, FROND_NAME_MAX);
}

bool is_label_key(const char *text, uint64_t len)
{
	const char *slash = len == 0 ? NULL : memchr(text, '/', len);
	if (slash == NULL)
		return is_qualified(text, len, PART_MAX);
	uint64_t prefix = (uint64_t)(slash - text);
	return is_node_name(text, prefix) && is_qualified(slash + 1, len - prefix - 1, PART_MAX);
}

bool is_label_value(const char *text, uint64_t len)
{
	return len == 0 || is_qualified(text, len, PART_MAX);
}

bool is_resource_name(const char *text, uint64_t len)
{
	return len > 0 && memchr(text, '/', len) != NULL && is_label_key(text, len);
}

bool is_namespace_name(const char *text, uint64_t len)
{
	return len <= PART_MAX && is_dns_part(text, len);
}
