//! Every function of the environment, with what kube-apiserver's own library answers.

use orlop_cel::{Budget, Env, Node, OldSelf, Output, Program, Value};
use orlop_schema::structural::Schema;
use serde_json::json;

fn evaluate(source: &str) -> Result<bool, String> {
    let schema = Schema::parse(&json!({"type": "object"}));
    let env = Env::crd(&schema, Node::Inner).map_err(|error| error.to_string())?;
    let program =
        Program::compile(source, &env, OldSelf::Required, Output::Bool).map_err(|error| error.to_string())?;
    match program.evaluate(&schema, &json!({}), None, &mut Budget::object()) {
        Ok(Value::Bool(verdict)) => Ok(verdict),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn these_hold() {
    let table = [
        r##"[1,2,3].isSorted()"##,
        r##"[1,2,3].sum() == 6"##,
        r##"[1,3,2].max() == 3"##,
        r##"[1,3,2].min() == 1"##,
        r##"[1,2,1].indexOf(1) == 0"##,
        r##"[1,2,1].lastIndexOf(1) == 2"##,
        r##"[1,2,3].slice(1,3) == [2,3]"##,
        r##"[[1],[2]].flatten() == [1,2]"##,
        r##"[3,1,2].sort() == [1,2,3]"##,
        r##"[3,1].sortBy(x, x) == [1,3]"##,
        r##"[1,1,2].distinct() == [1,2]"##,
        r##"[1,2].reverse() == [2,1]"##,
        r##"lists.range(3) == [0,1,2]"##,
        r##"sets.contains([1,2],[1])"##,
        r##"sets.intersects([1],[1,2])"##,
        r##"sets.equivalent([1,1],[1])"##,
        r##"'abc'.matches('^a.c$')"##,
        r##"'abc 123'.find('[0-9]+') == '123'"##,
        r##"'a1b2'.findAll('[0-9]') == ['1','2']"##,
        r##"'a1b2'.findAll('[0-9]',1) == ['1']"##,
        r##"url('https://h.com:80/p?q=1').getHost() == 'h.com:80'"##,
        r##"url('https://h.com/p').getScheme() == 'https'"##,
        r##"url('https://h.com/p?k=v').getQuery()['k'] == ['v']"##,
        r##"isURL('https://x')"##,
        r##"!isURL('../x')"##,
        r##"quantity('1Gi').isGreaterThan(quantity('500Mi'))"##,
        r##"quantity('1.5').compareTo(quantity('1500m')) == 0"##,
        r##"isQuantity('1.5Gi')"##,
        r##"!isQuantity('x')"##,
        r##"quantity('50k').add(20).asInteger() == 50020"##,
        r##"quantity('1Mi').asApproximateFloat() > 1.0"##,
        r##"ip('1.2.3.4').family() == 4"##,
        r##"isIP('::1')"##,
        r##"ip('127.0.0.1').isLoopback()"##,
        r##"ip.isCanonical('1.2.3.4')"##,
        r##"cidr('10.0.0.0/8').containsIP('10.1.2.3')"##,
        r##"cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')"##,
        r##"cidr('10.0.0.0/8').prefixLength() == 8"##,
        r##"isCIDR('10.0.0.0/8')"##,
        r##"cidr('192.168.1.5/24').masked() == cidr('192.168.1.0/24')"##,
        r##"semver('1.2.3').isLessThan(semver('1.10.0'))"##,
        r##"isSemver('1.2.3-alpha')"##,
        r##"semver('v1.2', true).major() == 1"##,
        r##"format.dns1123Label().validate('ok-name') == optional.none()"##,
        r##"!format.dns1123Label().validate('ok').hasValue()"##,
        r##"format.named('uuid').hasValue()"##,
        r##"format.dns1123Label().validate('Bad_').hasValue()"##,
        r##"'%s-%d'.format(['a', 1]) == 'a-1'"##,
        r##"'a,b'.split(',') == ['a','b']"##,
        r##"['a','b'].join('-') == 'a-b'"##,
        r##"'abc'.replace('b','x') == 'axc'"##,
        r##"'abc'.charAt(1) == 'b'"##,
        r##"'AbC'.lowerAscii() == 'abc'"##,
        r##"' a '.trim() == 'a'"##,
        r##"'abc'.substring(1) == 'bc'"##,
        r##"'abc'.indexOf('c') == 2"##,
        r##"strings.quote('a"b') == '"a\\"b"'"##,
        r##"optional.of(1).value() == 1"##,
        r##"optional.none().orValue(2) == 2"##,
        r##"[1,2][?5].orValue(9) == 9"##,
        r##"{'a':1}[?'b'].orValue(3) == 3"##,
        r##"duration('1h') > duration('30m')"##,
        r##"timestamp('2024-01-01T00:00:00Z').getFullYear() == 2024"##,
        r##"timestamp('2024-01-01T00:00:00Z') + duration('1h') == timestamp('2024-01-01T01:00:00Z')"##,
        r##"int('5') == 5"##,
        r##"string(5) == '5'"##,
        r##"[1,2,3].exists(x, x > 2) ? true : false"##,
        r##"1/0 == 0 || true"##,
        r##"'é'.size() == 1"##,
        r##"'😀'.size() == 1"##,
        r##"'\u00e9' == 'é'"##,
        r##"'a'.startsWith('a')"##,
        r##"uint(1) == 1u"##,
        r##"[1] + [2] == [1,2]"##,
        r##"'a' < 'b'"##,
        r##"optional.ofNonZeroValue('').hasValue() == false"##,
        r##"'abc'.lastIndexOf('c') == 2"##,
        r##"{'a': 1, 'b': 2}.all(k, v, v > 0)"##,
        r##"[1, 2].map(x, [x, x]).all(y, y.size() == 2)"##,
        r##"duration('1h').getMinutes() == 60"##,
        r##"timestamp('2024-02-29T12:34:56.789Z').getDayOfYear() == 59"##,
        r##"timestamp('2024-02-29T12:34:56.789Z').getDayOfWeek() == 4"##,
        r##"timestamp('2024-02-29T12:34:56.789Z').getHours('+05:30') == 18"##,
        r##"timestamp('2024-02-29T12:34:56.789Z').getMilliseconds() == 789"##,
        r##"string(timestamp('2024-02-29T12:34:56.789Z')) == '2024-02-29T12:34:56.789Z'"##,
        r##"string(duration('90m')) == '5400s'"##,
        r##"string(1.5) == '1.5'"##,
        r##"string(1e100) == '1e+100'"##,
        r##"string(b'abc') == 'abc'"##,
        r##"'abc'.charAt(3) == ''"##,
        r##"'abcabc'.lastIndexOf('b', 3) == 1"##,
        r##"'abcabc'.indexOf('b', 2) == 4"##,
        r##"'abc'.indexOf('', 2) == 2"##,
        r##"'a,b,c'.split(',', 2) == ['a', 'b,c']"##,
        r##"'abc'.split('') == ['a','b','c']"##,
        r##"'aaa'.replace('a','b',2) == 'bba'"##,
        r##"[].sum() == 0"##,
        r##"[3,1,2].sortBy(x, -x) == [3,2,1]"##,
        r##"['b','a'].sort() == ['a','b']"##,
        r##"[1,2].first().value() == 1"##,
        r##"sign(quantity('-1')) == -1"##,
        r##"quantity('1Ki').sub(quantity('24')).asInteger() == 1000"##,
        r##"ip('fe80::1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast() && ip('8.8.8.8').isGlobalUnicast() && ip('::').isUnspecified()"##,
        r##"string(cidr('10.1.0.0/8').masked()) == '10.0.0.0/8' && cidr('10.1.0.0/8').ip() == ip('10.1.0.0')"##,
        r##"semver('1.2.3-rc.1').isLessThan(semver('1.2.3')) && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3"##,
        r##"url('http://u:p@h:1/a%20b?x=1&x=2&y').getQuery() == {'x': ['1','2'], 'y': ['']}"##,
        r##"format.dns1123Label().validate('A').value()[0].size() > 10"##,
        r##"dyn([1]).all(x, x > 0)"##,
        r##"1 < 1.5 && 1u < 2 && 2.0 >= 1u"##,
        r##"{'a': 1}.transformMapEntry(k, v, {'x': v, 'y': k.size()}) == {'x': 1, 'y': 1}"##,
        r##"'aXb'.matches('[A-Z]') && 'x'.startsWith('x') && 'x'.endsWith('x') && 'abc'.contains('b')"##,
        r##"type(1) == int && type(1u) == uint && type([]) == list && type({}) == map && type(null) == null_type && type(type(1)) == type"##,
        r##"type(duration('1s')) == google.protobuf.Duration"##,
        r##"strings.quote('a\nb\t"') == "\"a\\nb\\t\\\"\"""##,
        r##"b'a' + b'b' == b'ab' && size(b'abc') == 3"##,
        "'%e'.format([1234.5]) == '1.234500\u{202f}×\u{202f}10⁰³'",
    ];
    for source in table {
        assert_eq!(evaluate(source), Ok(true), "{source}");
    }
}

#[test]
fn these_fail_with_the_words_of_the_server() {
    let table = [
        (r##"1/0 == 0"##, r##"division by zero"##),
        (r##"1%0 == 0"##, r##"modulus by zero"##),
        (r##"9223372036854775807 + 1 == 0"##, r##"integer overflow"##),
        (r##"[1][5] == 1"##, r##"index out of bounds: 5"##),
        (r##"{'a':1}['b'] == 1"##, r##"no such key: b"##),
        (r##"{1:2}[3] == 1"##, r##"no such key: 3"##),
        (r##"'abc'.substring(5) == ''"##, r##"index out of range: 5"##),
        (r##"'abc'.substring(2,1) == ''"##, r##"invalid substring range. start: 2, end: 1"##),
        (r##"'abc'.charAt(7) == ''"##, r##"index out of range: 7"##),
        (r##"[].max() == 1"##, r##"max called on empty list"##),
        (r##"[].min() == 1"##, r##"min called on empty list"##),
        (r##"[1,2,3].slice(2,9) == [1]"##, r##"cannot slice(2, 9), list is length 3"##),
        (
            r##"[1,2,3].slice(2,1) == [1]"##,
            r##"cannot slice(2, 1), start index must be less than or equal to end index"##,
        ),
        (r##"optional.none().value() == 1"##, r##"optional.none() dereference"##),
        (
            r##"quantity('1x').isInteger()"##,
            r##"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"##,
        ),
        (r##"quantity('1.5').asInteger() == 1"##, r##"cannot convert value to integer"##),
        (
            r##"ip('1.2.3') == ip('1.2.3.4')"##,
            r##"IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address too short"##,
        ),
        (
            r##"ip('1.2.3.4.5') == ip('1.2.3.4')"##,
            r##"IP Address "1.2.3.4.5" parse error during conversion from string: ParseAddr("1.2.3.4.5"): IPv4 address too long"##,
        ),
        (
            r##"ip('::ffff:1.2.3.4') == ip('1.2.3.4')"##,
            r##"IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed"##,
        ),
        (
            r##"ip('x') == ip('1.2.3.4')"##,
            r##"IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP"##,
        ),
        (
            r##"cidr('10.0.0.0/33').prefixLength() == 1"##,
            r##"network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("10.0.0.0/33"): prefix length out of range"##,
        ),
        (
            r##"cidr('x').prefixLength() == 1"##,
            r##"network address parse error during conversion from string: network address parse error during conversion from string: netip.ParsePrefix("x"): no '/'"##,
        ),
        (r##"cidr('10.0.0.0/8').containsIP('x')"##, r##"no such overload"##),
        (r##"semver('1.x.0').major() == 1"##, r##"Invalid character(s) found in minor number "x""##),
        (r##"semver('x').major() == 1"##, r##"No Major.Minor.Patch elements found"##),
        (
            r##"url('x y').getHost() == ''"##,
            r##"URL parse error during conversion from string: parse "x y": invalid URI for request"##,
        ),
        (r##"dyn('a') + dyn(1) == 1"##, r##"no such overload"##),
        (r##"dyn(1) < dyn('a')"##, r##"no such overload"##),
        (r##"dyn({'a':1}).b == 1"##, r##"no such key: b"##),
        (r##"[1,2,3].exists(x, 1/(x-2) > 5)"##, r##"division by zero"##),
        (r##"[0,1].exists_one(x, 1/x == 1)"##, r##"division by zero"##),
        (
            r##"{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}"##,
            r##"insert failed: key 1 already exists"##,
        ),
        (r##"int('x') == 1"##, "program instantiation failed: type conversion error from 'string' to 'int'"),
    ];
    for (source, expected) in table {
        assert_eq!(evaluate(source), Err(expected.to_owned()), "{source}");
    }
}
