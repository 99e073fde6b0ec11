/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubename.h - which names are names: Kubernetes' rules for nodes, labels, resources and namespaces, and ours for
 * domains. Owns the character sets and the words that describe them; never looks anything up.
 */
#ifndef FROND_TEXT_KUBENAME_H
#define FROND_TEXT_KUBENAME_H

#include <stdbool.h>
#include <stdint.h>

#define NODE_NAME_RULE   "1 to 253 of a-z, 0-9, \"-\" and \".\", with a letter or digit at both ends of each part"
#define DOMAIN_NAME_RULE "1 to 253 letters, digits, \"-\", \"_\" and \".\", with a letter or digit at both ends"
#define LABEL_KEY_RULE                                                                                                 \
	"a name of 1 to 63 letters, digits, \"-\", \"_\" and \".\", optionally after a DNS name and \"/\""
#define LABEL_VALUE_RULE "0 to 63 letters, digits, \"-\", \"_\" and \".\", with a letter or digit at both ends"
#define RESOURCE_RULE    "DNS name, \"/\", name, as in nvidia.com/gpu"
#define NAMESPACE_RULE   "1 to 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends"

bool is_node_name(const char *text, uint64_t len); /* DNS-1123 subdomain */
bool is_domain_name(const char *text, uint64_t len);
bool is_label_key(const char *text, uint64_t len);
bool is_label_value(const char *text, uint64_t len);
bool is_resource_name(const char *text, uint64_t len);  /* an extended resource: the DNS name is not optional */
bool is_namespace_name(const char *text, uint64_t len); /* DNS-1123 label */

#endif
