"""Agency templates in several languages with gaps for names. Written for these tests."""

TEMPLATES = {
    "appointment": (
        "en",
        "{C} names {P} chief executive",
        "{C} said on Monday that its board had appointed {P} as chief executive with immediate "
        "effect. {S} succeeds the founder of the company, who will stay on as chairman until the "
        "annual meeting in spring. The company makes pumps and valves for water works and employs "
        "about four thousand people in nine countries. Shares were little changed after the "
        "announcement. Analysts had expected a candidate from outside the industry. {S} joined "
        "the company twelve years ago and has led its largest division since then.",
        (
            {"C": "Alpha Corp", "P": "Joan Miller", "S": "Miller"},
            {"C": "Beta Industries", "P": "Peter Moore", "S": "Moore"},
        ),
    ),
    "profit": (
        "en",
        "{C} says profit to beat forecasts",
        "{C} said its profit for the year would exceed the forecasts of most analysts thanks to "
        "strong demand and lower costs. The company raised its outlook for the second time this "
        "year. {C} shares rose in early trade.",
        ({"C": "Northfield Mining"}, {"C": "Calder Textiles"}),
    ),
    "weather": (
        "en",
        "Weather warning for {C}",
        "The weather service issued a warning of strong wind and heavy rain for {C} on Tuesday "
        "night. Residents should stay indoors and keep away from trees and scaffolding. Ferries "
        "may be cancelled at short notice, and roads near the coast may be flooded. The warning "
        "for {C} is in force until Wednesday noon.",
        ({"C": "Lowmoor"}, {"C": "Hexford"}),
    ),
    "crash": (
        "en",
        "Man, 34, dies in crash on {C} road",
        "A man died on Sunday evening when his car left the road near {C} and hit a tree. Police "
        "said the driver was alone in the car and that no other vehicle was involved. The road "
        "was closed for several hours. Witnesses are asked to call the police station in {C}.",
        ({"C": "Ashwick"}, {"C": "Tarbury"}),
    ),
    "tennis": (
        "en",
        "{A} beats {B} in first round",
        "{A} beat {B} in straight sets to reach the second round of the tournament on Monday. The "
        "match lasted just over an hour and was played under a closed roof because of rain. {A} "
        "broke serve early and never looked back, hitting a dozen aces and giving away few points "
        "on serve. {B} had needed treatment for a sore shoulder between the sets. In the next "
        "round {A} meets the winner of the last match of the day.",
        ({"A": "Novara", "B": "Kessler"}, {"A": "Lindqvist", "B": "Okafor"}),
    ),
    "German": (
        "de",
        "{C} beruft {P} zum Chef",
        "Der Aufsichtsrat von {C} hat {P} zum neuen Vorstandsvorsitzenden berufen. {S} tritt das "
        "Amt zum Beginn des nächsten Monats an und folgt auf den Gründer des Unternehmens, der in "
        "den Aufsichtsrat wechselt. Das Unternehmen stellt Pumpen für Wasserwerke her und "
        "beschäftigt rund viertausend Menschen. {S} arbeitet seit zwölf Jahren dort und leitete "
        "zuletzt die größte Sparte.",
        (
            {"C": "Alfa Technik", "P": "Johanna Müller", "S": "Müller"},
            {"C": "Betawerk", "P": "Peter Hartung", "S": "Hartung"},
        ),
    ),
    "French": (
        "fr",
        "{C} nomme {P} à sa tête",
        "Le conseil d'administration de {C} a nommé {P} directeur général avec effet immédiat. "
        "{S} succède au fondateur de l'entreprise, qui restera président jusqu'à l'assemblée du "
        "printemps. La société fabrique des pompes pour les services des eaux et emploie environ "
        "quatre mille personnes. {S} y travaille depuis douze ans et dirigeait la plus grande "
        "division.",
        (
            {"C": "Alfatech", "P": "Jeanne Moulin", "S": "Moulin"},
            {"C": "Bétavar", "P": "Pierre Garnier", "S": "Garnier"},
        ),
    ),
    "Russian": (
        "ru",
        "{C} назначила {P} директором",
        "Совет директоров компании {C} назначил {P} генеральным директором. {S} сменит основателя "
        "компании, который останется председателем до весеннего собрания. Компания выпускает "
        "насосы для водоканалов, в ней работает около четырёх тысяч человек. {S} работает в "
        "компании двенадцать лет и руководил крупнейшим подразделением.",
        (
            {"C": "Альфа", "P": "Ивана Мельникова", "S": "Мельников"},
            {"C": "Вектор", "P": "Петра Громова", "S": "Громов"},
        ),
    ),
    "Chinese": (
        "zh",
        "{C}任命{P}为总经理",
        "{C}董事会周一宣布，任命{P}为公司总经理，即日生效。{P}将接替公司创始人，"
        "后者将留任董事长至春季股东大会。该公司为自来水厂生产水泵和阀门，"
        "在九个国家拥有约四千名员工。消息公布后股价变化不大。{P}十二年前加入公司，此后一直领导最大的部门。",
        ({"C": "北河机械", "P": "王立新"}, {"C": "东岭化工", "P": "陈晓燕"}),
    ),
    "Japanese": (
        "ja",
        "{C}、社長に{P}氏",
        "{C}は月曜日、{P}氏を社長に任命したと発表した。{P}氏は会社の創業者の後任となり、創業者は春の株主総会まで会長にとどまる。"
        "同社は水道向けのポンプとバルブを製造し、九か国で約四千人を雇用している。{P}氏は十二年前に入社し、最大の部門を率いてきた。",
        ({"C": "北川工業", "P": "山田"}, {"C": "東野化学", "P": "佐藤"}),
    ),
    "Korean": (
        "ko",
        "{C}, 새 대표에 {P}",
        "{C} 이사회는 월요일 {P}을 새 대표이사로 선임했다고 밝혔다. {P}은 회사 창업자의 뒤를 이으며 "
        "창업자는 봄 주주총회까지 의장으로 남는다. 이 회사는 수도 사업용 펌프와 밸브를 만들고 아홉 나라에서 "
        "약 사천 명을 고용하고 있다. {P}은 십이 년 전 입사해 가장 큰 사업부를 이끌어 왔다.",
        ({"C": "북하기계", "P": "김민준"}, {"C": "동령화학", "P": "박서연"}),
    ),
    "Arabic": (
        "ar",
        "{C} تعين {P} رئيسا تنفيذيا",
        "أعلن مجلس إدارة شركة {C} يوم الاثنين تعيين {P} رئيسا تنفيذيا للشركة بأثر فوري. ويخلف {P} "
        "مؤسس الشركة الذي سيبقى رئيسا للمجلس حتى اجتماع الربيع. وتصنع الشركة مضخات لمحطات المياه "
        "ويعمل فيها نحو أربعة آلاف شخص. وانضم {P} إلى الشركة قبل اثني عشر عاما وقاد أكبر أقسامها.",
        ({"C": "ألفا", "P": "منصور"}, {"C": "بيتا", "P": "خليل"}),
    ),
}
