#!/bin/sh
# SPDX-License-Identifier: MIT
# reprise export
. "$TOP/tests/cli/tap.sh"

run 0 show --exact a.trace && cp out exact
run 0 export --format=exact a.trace && cmp -s out exact
ok $? 'exact: what show --exact prints'
run 0 export --format=exact -o a.exact a.trace && cmp -s a.exact exact && [ ! -s out ]
ok $? 'to a file'
run 2 export --format=exact -o a.exact a.trace && says 'a.exact is there already' && cmp -s a.exact exact
ok $? 'an existing file is not replaced'
echo longer >>a.exact
run 0 export --format=exact -f -o a.exact a.trace && cmp -s a.exact exact
ok $? 'unless that is asked for'
run 2 export a.trace && says 'name the format'
ok $? 'a format must be named'
run 2 export --format=exact -o none/a.exact a.trace && says 'cannot create none/a.exact'
ok $? 'a file that cannot be made'
if [ -w /dev/full ]; then
	run 2 export --format=exact -f -o /dev/full a.trace && says 'cannot write /dev/full'
	ok $? 'a full disk'
else
	nr=$((nr + 1))
	echo "ok $nr - a full disk # SKIP no /dev/full"
fi

echo "1..$nr"
