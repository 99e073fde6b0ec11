/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces - the engine on real data, as Markdown tables; last line: N passed, N failed.
 *   traces lingjun FILE   gangs on the fabric of topo.csv, against greedy placers and the exact optimum
 *   traces openb DIR      the whole-GPU pods of Alibaba's 2023 trace, against best-fit and FGD
 * Exit 0 when all held, 1 when something did not, 2 for wrong usage or missing data.
 */
#include "lingjun.h"
#include "openb.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct tally tally = {0, 0};
	if (argc == 3 && strcmp(argv[1], "lingjun") == 0)
		lingjun_report(argv[2], &tally);
	else if (argc == 3 && strcmp(argv[1], "openb") == 0)
		openb_report(argv[2], &tally);
	else
		data_refuse("usage: traces lingjun FILE | traces openb DIR");
	printf("\n%u passed, %u failed\n", tally.passed, tally.failed);
	return tally.failed > 0;
}
