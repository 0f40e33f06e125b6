"""Short news items, a notice, a statement and a name of a briefing in five languages. For these tests."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """A headline, another one about the same news, and a text of 45 to 75 words (or 100 characters)."""

    title: str
    other_title: str
    text: str


ITEMS: dict[str, tuple[Item, ...]] = {
    "en": (
        Item(
            "Harbour pilots in Tornavik end strike",
            "Strike over: Tornavik pilots return to the harbour",
            "The pilots of the harbour at Tornavik ended their strike on Tuesday night after nine days. "
            "Both sides accepted a proposal by the mediator, under which wages rise in three steps until "
            "the autumn. Some forty freighters had been waiting outside the breakwater, several of them "
            "with perishable fruit. The port authority expects that the backlog will be cleared by the "
            "weekend if the wind stays calm.",
        ),
        Item(
            "Beavers dam a brook and flood a campsite",
            "Campsite under water after beavers build dam",
            "A family of beavers has built a dam across the brook below Ellerby and put half of the "
            "campsite under water. The tenant moved eleven caravans to higher ground with a borrowed "
            "tractor. Because the animals are protected, nobody may open the dam before the conservation "
            "office has inspected it. A ranger suggested a pipe through the branches, which worked well in "
            "a neighbouring valley.",
        ),
        Item(
            "Observatory finds a comet with two tails",
            "Two tails on new comet, astronomers say",
            "Astronomers at the mountain observatory of Quillan have photographed a comet that carries two "
            "tails at nearly right angles. One consists of dust, the other of ionised gas which the solar "
            "wind blows away. The object was noticed by a student who compared plates of four nights. In "
            "March it will be visible with binoculars shortly before sunrise, low above the eastern horizon.",
        ),
        Item(
            "Bakers' guild sues over frozen dough",
            "Court to rule on bread from frozen dough",
            "The guild of bakers wants supermarkets to label loaves that are only warmed up in the shop. It "
            "filed a suit at the commercial court in Maresby, since customers could not tell fresh bread "
            "from frozen dough. The retailers call the demand absurd and point at the list of ingredients "
            "on every bag. A first hearing is planned for the second week of May.",
        ),
    ),
    "de": (
        Item(
            "Lotsen in Tornavik beenden ihren Streik",
            "Streik vorbei: Lotsen kehren in den Hafen von Tornavik zurück",
            "Die Lotsen im Hafen von Tornavik haben am Dienstagabend nach neun Tagen ihren Streik beendet. "
            "Beide Seiten nahmen einen Vorschlag des Schlichters an, nach dem die Löhne bis zum Herbst in "
            "drei Schritten steigen. Rund vierzig Frachter hatten vor der Mole gewartet, einige davon mit "
            "verderblichem Obst. Die Hafenbehörde rechnet damit, dass der Rückstau bis zum Wochenende "
            "abgebaut ist, wenn der Wind ruhig bleibt.",
        ),
        Item(
            "Biber stauen Bach und fluten Zeltplatz",
            "Zeltplatz unter Wasser: Biber bauen einen Damm",
            "Eine Biberfamilie hat unterhalb von Ellerbach einen Damm gebaut und den halben Zeltplatz unter "
            "Wasser gesetzt. Der Pächter zog elf Wohnwagen mit einem geliehenen Traktor auf höheres "
            "Gelände. Weil die Tiere geschützt sind, darf niemand den Damm öffnen, ehe das Naturschutzamt "
            "ihn besichtigt hat. Ein Förster schlug ein Rohr durch die Äste vor, das sich in einem "
            "Nachbartal bewährt hat.",
        ),
        Item(
            "Sternwarte entdeckt Kometen mit zwei Schweifen",
            "Neuer Komet hat zwei Schweife",
            "Astronomen der Bergsternwarte Quillan haben einen Kometen fotografiert, der zwei Schweife fast "
            "im rechten Winkel trägt. Der eine besteht aus Staub, der andere aus ionisiertem Gas, das der "
            "Sonnenwind fortbläst. Bemerkt hat das Objekt eine Studentin, die Aufnahmen aus vier Nächten "
            "verglich. Im März wird es kurz vor Sonnenaufgang tief über dem Osthorizont im Fernglas zu "
            "sehen sein.",
        ),
        Item(
            "Bäckerinnung klagt wegen gefrorener Teiglinge",
            "Gericht prüft Brot aus gefrorenen Teiglingen",
            "Die Innung der Bäcker verlangt, dass Supermärkte Brote kennzeichnen, die im Laden nur "
            "aufgewärmt werden. Sie reichte beim Handelsgericht in Maresdorf Klage ein, weil Kunden "
            "frisches Brot nicht von gefrorenen Teiglingen unterscheiden könnten. Die Händler nennen die "
            "Forderung abwegig und verweisen auf die Zutatenliste auf jeder Tüte. Eine erste Verhandlung "
            "ist für die zweite Maiwoche geplant.",
        ),
    ),
    "es": (
        Item(
            "Los prácticos de Tornavik ponen fin a la huelga",
            "Acaba la huelga y los prácticos vuelven al puerto de Tornavik",
            "Los prácticos del puerto de Tornavik terminaron el martes por la noche su huelga de nueve "
            "días. Ambas partes aceptaron una propuesta del mediador, según la cual los salarios suben en "
            "tres pasos hasta el otoño. Unos cuarenta cargueros esperaban fuera del rompeolas, varios de "
            "ellos con fruta perecedera. La autoridad portuaria calcula que el atasco estará resuelto el "
            "fin de semana si el viento sigue en calma.",
        ),
        Item(
            "Unos castores represan un arroyo e inundan un camping",
            "Camping bajo el agua por la presa de unos castores",
            "Una familia de castores ha levantado una presa en el arroyo de Ellerana y ha dejado medio "
            "camping bajo el agua. El encargado llevó once caravanas a un terreno más alto con un tractor "
            "prestado. Como los animales están protegidos, nadie puede abrir la presa antes de que la "
            "inspeccione la oficina de conservación. Un guarda propuso un tubo entre las ramas, que "
            "funcionó en un valle vecino.",
        ),
        Item(
            "Un observatorio halla un cometa con dos colas",
            "El nuevo cometa tiene dos colas, dicen los astrónomos",
            "Astrónomos del observatorio de montaña de Quillán han fotografiado un cometa que lleva dos "
            "colas casi en ángulo recto. Una es de polvo y la otra de gas ionizado que arrastra el viento "
            "solar. El objeto lo advirtió una estudiante que comparaba placas de cuatro noches. En marzo "
            "podrá verse con prismáticos poco antes del amanecer, muy bajo sobre el horizonte oriental.",
        ),
        Item(
            "El gremio de panaderos demanda por la masa congelada",
            "Un tribunal decidirá sobre el pan de masa congelada",
            "El gremio de panaderos exige que los supermercados etiqueten las barras que solo se calientan "
            "en la tienda. Presentó una demanda ante el juzgado mercantil de Maresa, porque los clientes no "
            "pueden distinguir el pan fresco de la masa congelada. Los comercios tachan la petición de "
            "absurda y señalan la lista de ingredientes de cada bolsa. La primera vista está prevista para "
            "mayo.",
        ),
    ),
    "ru": (
        Item(
            "Лоцманы Торнавика прекратили забастовку",
            "Забастовка окончена: лоцманы вернулись в порт Торнавик",
            "Лоцманы порта Торнавик во вторник вечером прекратили забастовку, которая длилась девять дней. "
            "Обе стороны приняли предложение посредника, по которому зарплаты вырастут до осени в три "
            "этапа. Около сорока сухогрузов ждали за волнорезом, некоторые из них с портящимися фруктами. "
            "Администрация порта рассчитывает, что очередь рассосётся к выходным, если ветер останется "
            "слабым.",
        ),
        Item(
            "Бобры перегородили ручей и затопили кемпинг",
            "Кемпинг под водой из-за плотины бобров",
            "Семья бобров построила плотину на ручье ниже Эллерова и затопила половину кемпинга. Арендатор "
            "перевёз одиннадцать прицепов на возвышенность с помощью чужого трактора. Поскольку животные "
            "охраняются, никто не вправе разобрать плотину, пока её не осмотрит природоохранное ведомство. "
            "Егерь предложил проложить трубу сквозь ветки, что хорошо сработало в соседней долине.",
        ),
        Item(
            "Обсерватория нашла комету с двумя хвостами",
            "У новой кометы два хвоста, говорят астрономы",
            "Астрономы горной обсерватории Квиллан сфотографировали комету с двумя хвостами почти под "
            "прямым углом. Один состоит из пыли, другой из ионизированного газа, который уносит солнечный "
            "ветер. Объект заметила студентка, сравнивавшая снимки четырёх ночей. В марте его можно будет "
            "увидеть в бинокль незадолго до восхода, низко над восточным горизонтом.",
        ),
        Item(
            "Гильдия пекарей судится из-за замороженного теста",
            "Суд рассмотрит дело о хлебе из замороженного теста",
            "Гильдия пекарей требует, чтобы супермаркеты помечали буханки, которые в магазине лишь "
            "подогревают. Она подала иск в коммерческий суд Маресова, так как покупатели не отличают свежий "
            "хлеб от замороженного теста. Торговцы называют требование нелепым и указывают на перечень "
            "ингредиентов на каждом пакете. Первое заседание назначено на вторую неделю мая.",
        ),
    ),
    "zh": (
        Item(
            "托纳维港引航员结束罢工",
            "罢工落幕 托纳维港引航员复工",
            "托纳维港的引航员星期二晚上结束了为期九天的罢工。双方接受了调解人的方案，按照方案，工资将在秋季"
            "之前分三次上调。约四十艘货轮曾在防波堤外等候，其中几艘装着容易腐烂的水果。港务局预计，如果风力"
            "保持平稳，积压的船只到周末就能全部进港。",
        ),
        Item(
            "河狸筑坝淹没露营地",
            "露营地被水淹 原是河狸筑坝",
            "一个河狸家族在埃勒比下游的小溪上筑起水坝，把半个露营地泡在水里。承租人借来拖拉机，把十一辆房车"
            "拖到了高处。由于这种动物受到保护，在自然保护部门前来查看之前，谁也不许拆坝。一名护林员建议在树"
            "枝间埋一根管子，邻近山谷里这样做效果很好。",
        ),
        Item(
            "天文台发现双尾彗星",
            "天文学家：新彗星拖着两条尾巴",
            "基兰高山天文台的天文学家拍到了一颗彗星，它的两条尾巴几乎成直角。一条由尘埃组成，另一条是被太阳"
            "风吹走的电离气体。最先注意到它的是一名学生，她比较了四个夜晚的底片。三月里，日出前不久用双筒望"
            "远镜就能在东方地平线上方低处看到它。",
        ),
        Item(
            "面包师行会因冷冻面团提起诉讼",
            "法院将裁定冷冻面团面包案",
            "面包师行会要求超市标明那些只在店里加热的面包。行会已向马雷斯商事法院起诉，理由是顾客分不清新鲜"
            "面包和冷冻面团。零售商称这一要求荒唐，并指出每个袋子上都印有配料表。首次开庭定在五月的第二个星"
            "期，届时双方都将派代表出席。",
        ),
    ),
}

BRIEFINGS = {
    "en": "Good morning: what you need to know today",
    "de": "Guten Morgen: das Wichtigste am Tag",
    "es": "Buenos días: lo esencial de hoy",
    "ru": "Доброе утро: главное за сегодня",
    "zh": "早安快报：今天要知道的事",
}

# What a page has in place of its article.
NOTICES = {
    "en": "This story is for subscribers only. Please sign in or choose one of our plans to keep reading. "
    "Already a customer but still locked out? Clear your cookies, switch off any blocker and load the "
    "page again. Our help desk answers every day from eight until six and also by mail. Cancel "
    "whenever you like.",
    "de": "Dieser Beitrag ist nur für Abonnenten. Bitte melden Sie sich an oder wählen Sie ein Angebot, um "
    "weiterzulesen. Schon Kunde und trotzdem ausgesperrt? Löschen Sie die Cookies, schalten Sie "
    "Blocker ab und laden Sie die Seite neu. Unser Kundendienst antwortet täglich von acht bis "
    "achtzehn Uhr, auch per Post. Die Kündigung ist jederzeit möglich.",
    "es": "Este contenido es solo para suscriptores. Inicie sesión o elija una de nuestras tarifas para "
    "seguir leyendo. ¿Ya es cliente y no puede entrar? Borre las cookies, desactive los bloqueadores "
    "y cargue la página otra vez. Nuestro servicio de ayuda responde cada día de ocho a seis y "
    "también por correo. Puede darse de baja cuando quiera.",
    "ru": "Этот материал доступен только подписчикам. Войдите или выберите один из тарифов, чтобы читать "
    "дальше. Уже оформили подписку, но доступа нет? Удалите куки, отключите блокировщики и загрузите "
    "страницу снова. Служба поддержки отвечает ежедневно с восьми до шести, в том числе письмами. "
    "Отказаться можно в любое время.",
    "zh": "本文仅供订阅用户阅读。请登录或选择一种套餐后继续浏览。已经是客户却仍然打不开？请清除浏览记录，关"
    "闭各种拦截插件，然后重新载入页面。客服每天八点到十八点在线答复，也可以写信联系我们。您随时可以取"
    "消订阅，无需说明理由。",
}

# A statement that two reports quote.
STATEMENTS = {
    "en": "“We have heard the concerns of the people along the river, and we take them seriously. Nobody is "
    "going to lose a home because of a line that somebody drew on a map forty years ago. Before a "
    "single tree is cut, the plans will lie open in every town hall, and every objection gets an "
    "answer in writing. That is my promise, and you may measure me by it.”",
    "de": "„Wir haben die Sorgen der Leute am Fluss gehört, und wir nehmen sie ernst. Niemand wird sein "
    "Haus verlieren, weil vor vierzig Jahren jemand eine Linie in eine Karte gezeichnet hat. Bevor "
    "auch nur ein Baum fällt, liegen die Pläne in jedem Rathaus aus, und auf jeden Einwand folgt eine "
    "schriftliche Antwort. Das verspreche ich, und daran dürfen Sie mich messen.“",
    "es": "«Hemos oído las preocupaciones de la gente del río y las tomamos en serio. Nadie perderá su casa "
    "por una línea que alguien trazó en un mapa hace cuarenta años. Antes de que caiga un solo árbol, "
    "los planos estarán abiertos en todos los ayuntamientos y cada objeción recibirá una respuesta "
    "por escrito. Esa es mi promesa, y por ella pueden juzgarme.»",
    "ru": "«Мы услышали тревоги жителей у реки и относимся к ним серьёзно. Никто не лишится дома из-за "
    "линии, которую кто-то провёл на карте сорок лет назад. Прежде чем упадёт хоть одно дерево, планы "
    "будут лежать в каждой ратуше, и на каждое возражение придёт письменный ответ. Это моё обещание, "
    "и по нему вы можете обо мне судить».",
    "zh": "“我们听到了河边居民的担忧，也认真对待这些担忧。没有人会因为四十年前有人在地图上画的一条线而失去家"
    "园。在砍下第一棵树之前，规划图会摆在每个镇公所供人查阅，每一条意见都会得到书面答复。这是我的承诺"
    "，大家可以拿它来衡量我。”",
}
